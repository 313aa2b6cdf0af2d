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

impl Error {
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
    }
}
