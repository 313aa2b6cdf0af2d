//! The migrations of this program beside those that a database has.

use clickhouse::Row;
use serde::{Deserialize, Serialize};

use super::files::{Applied, FILES};
use crate::client::{QUERY_TIMEOUT, Warehouse, with_timeout};
use crate::error::Error;

/// A migration of this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Migration {
    /// Its file's name.
    pub name: &'static str,
    pub sql: &'static str,
}

/// The migrations of this program, compared with a database.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MigrationState {
    /// The names of the files that the database has.
    pub applied: Vec<String>,
    /// Those that it lacks, in order.
    pub pending: Vec<Migration>,
    /// Names that this program does not know: a newer release applied them.
    pub unknown: Vec<String>,
}

#[derive(Row, Serialize, Deserialize)]
struct Version {
    version: String,
}

impl Warehouse {
    /// Compares the migrations of this program with those of the database, which may be missing.
    pub async fn list_migrations(&self) -> Result<MigrationState, Error> {
        let server = self.client.clone().with_database("default");
        let table = server
            .query("SELECT count() FROM system.tables WHERE database = ? AND name = 'schema_migrations'")
            .bind(&self.database)
            .fetch_one::<u64>();
        let applied: Vec<String> = if with_timeout(QUERY_TIMEOUT, table).await? == 0 {
            Vec::new()
        } else {
            let query = self.client.query("SELECT DISTINCT name FROM schema_migrations ORDER BY name");
            let applied = with_timeout(QUERY_TIMEOUT, query.fetch_all::<Applied>()).await?;
            applied.into_iter().map(|applied| applied.name).collect()
        };
        let is_applied = |name: &str| applied.iter().any(|applied| applied == name);
        let files = FILES.iter().map(|(name, sql)| Migration { name, sql });
        let pending = files.filter(|file| !is_applied(file.name)).collect();
        let is_known = |name: &String| FILES.iter().any(|(file, _)| file == name);
        let unknown = applied.iter().filter(|name| !is_known(name)).cloned().collect();
        Ok(MigrationState { applied, pending, unknown })
    }

    /// Returns the server's version, such as `26.7.3.1`.
    pub async fn server_version(&self) -> Result<String, Error> {
        let server = self.client.clone().with_database("default");
        let version = server.query("SELECT version() AS version").fetch_one::<Version>();
        Ok(with_timeout(QUERY_TIMEOUT, version).await?.version)
    }
}
