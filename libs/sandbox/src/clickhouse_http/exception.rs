//! ClickHouse's own errors, as its HTTP interface tells them: a code, a text, and the status a code means.

use std::fmt;

use axum::http::StatusCode;

/// A statement that failed, or a request that never became one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Exception {
    /// ClickHouse's number: 60 is an unknown table.
    pub(crate) code: u32,
    /// `Code: 60. DB::Exception: … (UNKNOWN_TABLE)`, one line or several.
    pub(crate) text: String,
}

impl Exception {
    /// One of the front's own refusals, in ClickHouse's words.
    pub(crate) fn new(code: u32, name: &str, said: impl fmt::Display) -> Self {
        Self { code, text: format!("Code: {code}. DB::Exception: {said} ({name})") }
    }

    /// What libchdb said. Its texts begin with `Code: N.`; anything else is a fault of the library (1001,
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

    /// The status ClickHouse answers with (its `exceptionCodeToHTTPStatus`).
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

    /// The body of an error: the text and a line's end.
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
    fn the_code_is_read_from_the_engines_text() {
        let said = Exception::from_engine(
            "Code: 60. DB::Exception: Table default.t does not exist. (UNKNOWN_TABLE)\n",
        );
        assert_eq!((said.code, said.status()), (60, StatusCode::NOT_FOUND));
        assert_eq!(Exception::from_engine("std::bad_alloc").code, 1001);
    }
}
