//! What can go wrong in Postgres, as far as callers treat it differently.

/// A statement could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The database refused the statement or can't be reached.
    #[error("postgres: {0}")]
    Database(#[from] sqlx::Error),
    /// The schema could not be brought up to date.
    #[error("migrating postgres: {0}")]
    Migration(#[from] sqlx::migrate::MigrateError),
    /// A stored value is not one this version writes.
    #[error("{table}.{column} holds a value this version does not know: {value}")]
    Unreadable {
        /// Where.
        table: &'static str,
        /// In which column.
        column: &'static str,
        /// What stands there.
        value: String,
    },
}

impl Error {
    /// Whether it is about the rows that were asked for, and passes: somebody else had or changed them.
    pub(crate) fn is_row_conflict(&self) -> bool {
        let Self::Database(sqlx::Error::Database(error)) = self else { return false };
        let code = error.code().unwrap_or_default();
        ["40", "55P03", "23503"].iter().any(|passing| code.starts_with(passing))
    }

    /// Whether the database itself refused a statement: nothing of it has happened then.
    pub fn is_rejected_statement(&self) -> bool {
        matches!(self, Self::Database(sqlx::Error::Database(_)))
    }
}

/// What may go well when it is tried again, by the beginnings of Postgres' codes. 57: operator intervention
/// (shutdown, starting up). 53: insufficient resources. 40: rolled back for another's sake, as after a deadlock.
/// 55P03: somebody held a lock for too long. 23503: what a row refers to has ended while it was written; asked
/// again, one learns that it is gone.
const PASSING: [&str; 5] = ["57", "53", "40", "55P03", "23503"];

impl domain::Fault for Error {
    fn is_unavailable(&self) -> bool {
        match self {
            Self::Database(sqlx::Error::Database(error)) => {
                let code = error.code().unwrap_or_default();
                PASSING.iter().any(|passing| code.starts_with(passing))
            }
            Self::Database(error) => matches!(
                error,
                sqlx::Error::Io(_)
                    | sqlx::Error::PoolTimedOut
                    | sqlx::Error::PoolClosed
                    | sqlx::Error::WorkerCrashed
            ),
            Self::Migration(_) | Self::Unreadable { .. } => false,
        }
    }
}
