//! ClickHouse's errors as in its HTTP interface: a code, a text, and the HTTP status of the code.

use std::fmt;

use axum::http::StatusCode;

/// The error of a failed statement or of an invalid request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Exception {
    /// ClickHouse's error code, such as 60 for an unknown table.
    pub(crate) code: u32,
    /// The text, such as `Code: 60. DB::Exception: … (UNKNOWN_TABLE)`. May have several lines.
    pub(crate) text: String,
}

impl Exception {
    /// An error of this interface itself, in ClickHouse's format.
    pub(crate) fn new(code: u32, name: &str, message: impl fmt::Display) -> Self {
        Self { code, text: format!("Code: {code}. DB::Exception: {message} ({name})") }
    }

    /// An error from libchdb. Its texts begin with `Code: N.`; any other text is a failure of the library (1001,
    /// `STD_EXCEPTION`).
    pub(crate) fn from_engine(text: &str) -> Self {
        let code = text
            .split_once("Code: ")
            .and_then(|(_, rest)| rest.split_once('.'))
            .and_then(|(number, _)| number.parse().ok());
        match code {
            Some(code) => Self { code, text: text.trim_end().to_owned() },
            None => Self::new(1001, "STD_EXCEPTION", text.trim_end()),
        }
    }

    /// Returns the HTTP status of the code, as ClickHouse's `exceptionCodeToHTTPStatus`.
    pub(crate) fn status(&self) -> StatusCode {
        match self.code {
            194 => StatusCode::UNAUTHORIZED,
            192 | 193 | 497 | 512 | 516 => StatusCode::FORBIDDEN,
            6 | 8 | 15 | 25 | 26 | 27 | 36 | 37 | 38 | 41 | 44 | 53 | 62 | 72 | 117 | 123 | 167 | 168
            | 223 | 321 | 376 | 427 | 441 | 675 | 676 => StatusCode::BAD_REQUEST,
            46 | 47 | 50 | 56 | 60 | 63 | 73 | 78 | 81 | 115 | 152 | 336 | 511 => StatusCode::NOT_FOUND,
            48 => StatusCode::NOT_IMPLEMENTED,
            76 | 209 | 439 => StatusCode::SERVICE_UNAVAILABLE,
            159 => StatusCode::REQUEST_TIMEOUT,
            229 => StatusCode::PAYLOAD_TOO_LARGE,
            381 => StatusCode::LENGTH_REQUIRED,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// Returns the body of an error response: the text and a line break.
    pub(crate) fn line(&self) -> String {
        format!("{}\n", self.text)
    }
}

impl fmt::Display for Exception {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_code_from_the_engines_text() {
        let exception = Exception::from_engine(
            "Code: 60. DB::Exception: Table default.t does not exist. (UNKNOWN_TABLE)\n",
        );
        assert_eq!((exception.code, exception.status()), (60, StatusCode::NOT_FOUND));
        assert_eq!(Exception::from_engine("std::bad_alloc").code, 1001);
    }
}
