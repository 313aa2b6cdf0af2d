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
    /// Whether the statement would have doubled what the named constraint keeps unique.
    pub fn violates(&self, constraint: &str) -> bool {
        let Self::Database(sqlx::Error::Database(error)) = self else { return false };
        error.is_unique_violation() && error.constraint() == Some(constraint)
    }
}

impl domain::Fault for Error {
    fn is_unavailable(&self) -> bool {
        match self {
            Self::Database(sqlx::Error::Database(error)) => {
                // Class 57: operator intervention (shutdown, starting up); 53: insufficient resources; 40: rolled
                // back for another's sake, as in a deadlock.
                error
                    .code()
                    .is_some_and(|code| ["57", "53", "40"].iter().any(|class| code.starts_with(class)))
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

    fn is_conflict(&self) -> bool {
        let Self::Database(sqlx::Error::Database(error)) = self else { return false };
        error.is_foreign_key_violation()
    }
}
