//! Whether the schema of the database fits this program. How many releases newer it is says Postgres, because both schemas are
//! migrated together: `libs/store/docs/0007-releases-of-the-schema.md`.

use super::files::FILES;
use super::state::MigrationState;
use crate::client::Warehouse;
use crate::error::Error;

/// Why this program must not work on the database. The text says what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaMismatch {
    /// Migrations of this program are not applied.
    #[error(
        "the ClickHouse database {}, this program needs {needed}: run `webruntime migrate`",
        describe(applied.as_deref())
    )]
    Older {
        /// The newest migration of the database; `None` if it has none.
        applied: Option<String>,
        /// The newest migration of this program that is not applied.
        needed: String,
    },
    /// The database answers, but not with its schema.
    #[error(
        "the schema of the ClickHouse database can't be checked: {reason}; this program must be able to read `system.tables` and `schema_migrations`"
    )]
    Unreadable {
        /// What the database said.
        reason: String,
    },
}

fn describe(applied: Option<&str>) -> String {
    applied.map_or_else(|| "has no schema".to_owned(), |name| format!("has schema {name}"))
}

impl Warehouse {
    /// Returns why this program must not work on the database; `None` if it may.
    ///
    /// # Errors
    /// The database does not answer, or not now.
    pub async fn find_schema_mismatch(&self) -> Result<Option<SchemaMismatch>, Error> {
        match self.list_migrations().await {
            // It would say the same each time.
            Err(error) if error.is_refusal() => {
                Ok(Some(SchemaMismatch::Unreadable { reason: error.to_string() }))
            }
            state => Ok(find_older(state?)),
        }
    }
}

fn find_older(state: MigrationState) -> Option<SchemaMismatch> {
    let needed = version(state.pending.last()?.name);
    let known = state.applied.iter().filter(|name| FILES.iter().any(|(file, _)| file == name));
    Some(SchemaMismatch::Older { applied: known.max().map(|name| version(name)), needed })
}

/// Returns the name of a file without `.sql`.
fn version(file: &str) -> String {
    file.trim_end_matches(".sql").to_owned()
}
