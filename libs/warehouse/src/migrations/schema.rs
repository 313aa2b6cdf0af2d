//! Whether the schema of the database fits this program. How many releases newer it is says Postgres, because both schemas are
//! migrated together: `libs/store/docs/0007-releases-of-the-schema.md`.

use super::{FILES, MigrationState};
use crate::client::Warehouse;
use crate::error::Error;

/// Migrations of this program are not applied. The text says what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the ClickHouse database {}, this program needs {needed}: run `webruntime migrate`", describe(applied.as_deref()))]
pub struct SchemaMismatch {
    /// The newest migration of the database; `None` if it has none.
    applied: Option<String>,
    /// The newest migration of this program that is not applied.
    needed: String,
}

fn describe(applied: Option<&str>) -> String {
    applied.map_or_else(|| "has no schema".to_owned(), |name| format!("has schema {name}"))
}

impl Warehouse {
    /// Returns why this program must not work on the database; `None` if it may.
    pub async fn find_schema_mismatch(&self) -> Result<Option<SchemaMismatch>, Error> {
        Ok(find_older(self.list_migrations().await?))
    }
}

fn find_older(state: MigrationState) -> Option<SchemaMismatch> {
    let needed = version(state.pending.last()?.name);
    let known = state.applied.iter().filter(|name| FILES.iter().any(|(file, _)| file == name));
    Some(SchemaMismatch { applied: known.max().map(|name| version(name)), needed })
}

/// Returns the name of a file without `.sql`.
fn version(file: &str) -> String {
    file.trim_end_matches(".sql").to_owned()
}
