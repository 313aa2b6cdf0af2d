//! Errors of Postgres, grouped by how callers must react.

use sqlx::error::DatabaseError;
use sqlx::postgres::{PgDatabaseError, PgSeverity};

/// The failure of a statement.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Postgres rejected the statement or is unreachable.
    #[error("postgres: {0}")]
    Database(#[from] sqlx::Error),
    /// The migrations could not be applied.
    #[error("migrating postgres: {0}")]
    Migration(#[from] sqlx::migrate::MigrateError),
    /// A stored value is unknown to this version.
    #[error("{table}.{column} holds a value this version does not know: {value}")]
    Unreadable { table: &'static str, column: &'static str, value: String },
    /// A setting is invalid.
    #[error("{0}")]
    Setting(String),
}

impl Error {
    /// Returns whether the error is a transient conflict over the rows of this statement, caused by a concurrent
    /// transaction.
    pub fn is_row_conflict(&self) -> bool {
        let Self::Database(sqlx::Error::Database(error)) = self else { return false };
        let code = error.code().unwrap_or_default();
        ["40", "55P03", "23503"].iter().any(|prefix| code.starts_with(prefix))
    }

    /// Returns whether Postgres accepts no writes at the moment, as during a failover or with a full disk. Reads work.
    pub(crate) fn is_read_only(&self) -> bool {
        let Self::Database(sqlx::Error::Database(error)) = self else { return false };
        error.code().is_some_and(|code| code == READ_ONLY)
    }

    /// Returns whether Postgres cancelled the statement because it took too long.
    pub fn is_statement_timeout(&self) -> bool {
        let Self::Database(sqlx::Error::Database(error)) = self else { return false };
        error.code().is_some_and(|code| code == QUERY_CANCELED)
    }

    /// Returns whether Postgres itself rejected the statement, so that it had no effect.
    pub fn is_rejected_statement(&self) -> bool {
        matches!(self, Self::Database(sqlx::Error::Database(_)))
    }
}

/// SQLSTATE of a statement that was cancelled, as after the statement timeout.
const QUERY_CANCELED: &str = "57014";
/// SQLSTATE of a write while Postgres is read-only.
const READ_ONLY: &str = "25006";

/// Prefixes of the SQLSTATE codes that may succeed on retry. 57: operator intervention (shutdown, starting up, statement
/// timeout). 53: insufficient resources. 40: rolled back, for example after a deadlock. 55P03: a lock was not granted in
/// time. 25P03 and 25P04: Postgres ended an idle or long transaction. 23503: a referenced row was deleted during the write; the
/// retry finds it missing.
const TRANSIENT_CODES: [&str; 8] = ["57", "53", "40", "55P03", "25P03", "25P04", READ_ONLY, "23503"];

/// Prefix of the SQLSTATE codes of internal errors. One that ends the connection is a trouble of the server, such as a full disk
/// on which a new connection can't write its files, and none of the statement.
const INTERNAL_ERROR: &str = "XX";

impl domain::Transient for Error {
    fn is_transient(&self) -> bool {
        match self {
            Self::Database(sqlx::Error::Database(error)) => {
                let code = error.code().unwrap_or_default();
                TRANSIENT_CODES.iter().any(|prefix| code.starts_with(prefix))
                    || (code.starts_with(INTERNAL_ERROR) && has_ended_connection(error.as_ref()))
            }
            Self::Database(error) => matches!(
                error,
                sqlx::Error::Io(_)
                    | sqlx::Error::Tls(_)
                    | sqlx::Error::PoolTimedOut
                    | sqlx::Error::PoolClosed
                    | sqlx::Error::WorkerCrashed
            ),
            Self::Migration(_) | Self::Unreadable { .. } | Self::Setting(_) => false,
        }
    }
}

fn has_ended_connection(error: &dyn DatabaseError) -> bool {
    let error = error.try_downcast_ref::<PgDatabaseError>();
    error.is_some_and(|error| matches!(error.severity(), PgSeverity::Fatal | PgSeverity::Panic))
}
