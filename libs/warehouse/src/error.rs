//! Errors of ClickHouse, classified by what callers can do about them.

use clickhouse::error::Error as ClientError;

/// A failed statement.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// ClickHouse rejected the statement or is unavailable.
    #[error("clickhouse: {0}")]
    Statement(#[from] ClientError),
    /// A migration failed.
    #[error("migrating clickhouse, {file}: {source}")]
    Migration {
        /// The name of the SQL file.
        file: &'static str,
        /// The error of its statement.
        source: ClientError,
    },
    /// A setting is invalid.
    #[error("{0}")]
    Setting(String),
}

/// ClickHouse's codes of permanent errors: unknown or mistyped columns and functions, syntax, unreadable values. All other
/// errors (overload, memory, a table not migrated yet, …) may be transient.
const PERMANENT_CODES: &[u32] =
    &[6, 10, 16, 20, 26, 27, 33, 34, 36, 38, 41, 42, 43, 44, 46, 47, 53, 62, 69, 70, 72, 117, 131, 349];

/// The code of a statement to which the user lacks a right. An operator may grant it, so it is not among the permanent ones.
const ACCESS_DENIED: u32 = 497;

/// The code of a result with too many rows.
const TOO_LARGE_RESULT: u32 = 396;

/// The limit that a statement exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExceededLimit {
    /// Rows to read. A retry reads as many.
    Rows,
    /// Time or memory. A retry may succeed under less load.
    TimeOrMemory,
}

impl Error {
    /// Returns the exceeded limit if that is why the statement failed.
    pub fn exceeded_limit(&self) -> Option<ExceededLimit> {
        match self.source()? {
            ClientError::TimedOut => Some(ExceededLimit::TimeOrMemory),
            ClientError::BadResponse(text) => match code_of(text)? {
                158 | 307 | 396 => Some(ExceededLimit::Rows),
                159 | 160 | 209 | 241 => Some(ExceededLimit::TimeOrMemory),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether the server reported the exceeded limit, so that a smaller statement may succeed.
    pub(crate) fn is_server_limit(&self) -> bool {
        matches!(self, Self::Statement(ClientError::BadResponse(_))) && self.exceeded_limit().is_some()
    }

    /// Whether the result would have had more rows than the statement may return.
    pub(crate) fn is_too_large_result(&self) -> bool {
        matches!(self.source(), Some(ClientError::BadResponse(text)) if code_of(text) == Some(TOO_LARGE_RESULT))
    }

    fn source(&self) -> Option<&ClientError> {
        match self {
            Self::Statement(source) | Self::Migration { source, .. } => Some(source),
            Self::Setting(_) => None,
        }
    }

    /// Whether the server refused the statement for good: it is wrong there, or its user lacks the right to it.
    pub(crate) fn is_refusal(&self) -> bool {
        let Some(ClientError::BadResponse(text)) = self.source() else { return false };
        code_of(text).is_some_and(|code| code == ACCESS_DENIED || PERMANENT_CODES.contains(&code))
    }

    /// Whether a retry may succeed.
    pub fn retryable(&self) -> bool {
        match self.source() {
            Some(ClientError::Network(_) | ClientError::TimedOut) => true,
            Some(ClientError::BadResponse(text)) => {
                !code_of(text).is_some_and(|code| PERMANENT_CODES.contains(&code))
            }
            _ => false,
        }
    }
}

impl domain::Transient for Error {
    fn is_transient(&self) -> bool {
        self.retryable()
    }
}

/// Parses the code from `Code: 60. DB::Exception: …`.
fn code_of(text: &str) -> Option<u32> {
    let (_, rest) = text.split_once("Code: ")?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(text: &str) -> Error {
        Error::Statement(ClientError::BadResponse(text.into()))
    }

    #[test]
    fn overload_and_unavailability_are_retryable_but_invalid_statements_are_not() {
        let retryable = [
            Error::Statement(ClientError::TimedOut),
            Error::Statement(ClientError::Network("connection refused".into())),
            response("Code: 252. DB::Exception: Too many parts (TOO_MANY_PARTS)"),
            response("Code: 241. DB::Exception: Memory limit exceeded"),
            response("Code: 60. DB::Exception: Table app.events doesn't exist"),
            response("502 Bad Gateway"),
        ];
        assert!(retryable.iter().all(Error::retryable));
        let permanent = [
            response("Code: 62. DB::Exception: Syntax error"),
            response("Code: 16. DB::Exception: No such column visits in table"),
            Error::Statement(ClientError::SchemaMismatch("column visits".into())),
        ];
        assert!(!permanent.iter().any(Error::retryable));
        assert!(permanent.iter().all(|error| error.exceeded_limit().is_none()));
    }

    #[test]
    fn a_refusal_is_an_answer_and_an_overloaded_server_is_none() {
        let denied = "Code: 497. DB::Exception: app: Not enough privileges. (ACCESS_DENIED)";
        assert!(response(denied).is_refusal());
        assert!(response("Code: 47. DB::Exception: Unknown expression identifier `name`").is_refusal());
        for no_answer in [
            Error::Statement(ClientError::TimedOut),
            Error::Statement(ClientError::Network("connection refused".into())),
            response("Code: 516. DB::Exception: app: Authentication failed"),
            response("Code: 241. DB::Exception: Memory limit exceeded"),
            response("502 Bad Gateway"),
        ] {
            assert!(!no_answer.is_refusal(), "{no_answer}");
        }
    }

    #[test]
    fn exceeded_limits_are_recognized_by_code() {
        let rows = response("Code: 158. DB::Exception: Limit for rows exceeded");
        assert_eq!(rows.exceeded_limit(), Some(ExceededLimit::Rows));
        for timeout in
            [Error::Statement(ClientError::TimedOut), response("Code: 159. DB::Exception: Timeout exceeded")]
        {
            assert_eq!(timeout.exceeded_limit(), Some(ExceededLimit::TimeOrMemory));
        }
        assert_eq!(
            response("Code: 241. DB::Exception: Memory").exceeded_limit(),
            Some(ExceededLimit::TimeOrMemory)
        );
    }
}
