//! What can go wrong in ClickHouse, as far as callers treat it differently.

use clickhouse::error::Error as ClientError;

/// A statement could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// ClickHouse refused the statement or can't be reached.
    #[error("clickhouse: {0}")]
    Statement(#[from] ClientError),
    /// The schema could not be brought up to date.
    #[error("migrating clickhouse, {file}: {source}")]
    Migration {
        /// The file that failed.
        file: &'static str,
        /// What ClickHouse said.
        source: ClientError,
    },
}

/// ClickHouse's codes for "what you ask is wrong and will be wrong again": unknown or mistyped columns and
/// functions, syntax, values that can't be read. Everything else (overload, memory, a table not migrated yet, …)
/// may pass.
const REFUSALS: &[u32] =
    &[6, 10, 16, 20, 26, 27, 33, 34, 36, 38, 41, 42, 43, 44, 46, 47, 53, 62, 69, 70, 72, 117, 131, 349];

/// What a statement took too much of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExceededLimit {
    /// Rows to read: it will be as many the next time.
    Rows,
    /// Time or memory, of which there may be more when fewer ask.
    TimeOrMemory,
}

impl Error {
    /// What the statement took too much of, if that is why it failed.
    pub fn exceeded_limit(&self) -> Option<ExceededLimit> {
        let (Self::Statement(source) | Self::Migration { source, .. }) = self;
        match source {
            ClientError::TimedOut => Some(ExceededLimit::TimeOrMemory),
            ClientError::BadResponse(text) => match code_of(text)? {
                158 | 307 | 396 => Some(ExceededLimit::Rows),
                159 | 160 | 209 | 241 => Some(ExceededLimit::TimeOrMemory),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether the server itself said that it was too much: less of it may be carried out.
    pub(crate) fn is_too_much_for_the_server(&self) -> bool {
        matches!(self, Self::Statement(ClientError::BadResponse(_))) && self.exceeded_limit().is_some()
    }

    /// Whether the same statement may succeed later.
    pub fn retryable(&self) -> bool {
        let (Self::Statement(source) | Self::Migration { source, .. }) = self;
        match source {
            ClientError::Network(_) | ClientError::TimedOut => true,
            ClientError::BadResponse(text) => !code_of(text).is_some_and(|code| REFUSALS.contains(&code)),
            _ => false,
        }
    }
}

impl domain::Fault for Error {
    fn is_unavailable(&self) -> bool {
        self.retryable()
    }
}

/// The number in `Code: 60. DB::Exception: …`.
fn code_of(text: &str) -> Option<u32> {
    let (_, rest) = text.split_once("Code: ")?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(text: &str) -> Error {
        Error::Statement(ClientError::BadResponse(text.into()))
    }

    #[test]
    fn overload_and_absence_may_pass_but_nonsense_stays_nonsense() {
        let retryable = [
            Error::Statement(ClientError::TimedOut),
            Error::Statement(ClientError::Network("connection refused".into())),
            answer("Code: 252. DB::Exception: Too many parts (TOO_MANY_PARTS)"),
            answer("Code: 241. DB::Exception: Memory limit exceeded"),
            answer("Code: 60. DB::Exception: Table app.events doesn't exist"),
            answer("502 Bad Gateway"),
        ];
        assert!(retryable.iter().all(Error::retryable));
        let refused = [
            answer("Code: 62. DB::Exception: Syntax error"),
            answer("Code: 16. DB::Exception: No such column visits in table"),
            Error::Statement(ClientError::SchemaMismatch("column visits".into())),
        ];
        assert!(!refused.iter().any(Error::retryable));
        assert!(refused.iter().all(|error| error.exceeded_limit().is_none()));
    }

    #[test]
    fn what_takes_too_much_says_of_what() {
        let rows = answer("Code: 158. DB::Exception: Limit for rows exceeded");
        assert_eq!(rows.exceeded_limit(), Some(ExceededLimit::Rows));
        for too_long in
            [Error::Statement(ClientError::TimedOut), answer("Code: 159. DB::Exception: Timeout exceeded")]
        {
            assert_eq!(too_long.exceeded_limit(), Some(ExceededLimit::TimeOrMemory));
        }
        assert_eq!(
            answer("Code: 241. DB::Exception: Memory").exceeded_limit(),
            Some(ExceededLimit::TimeOrMemory)
        );
    }
}
