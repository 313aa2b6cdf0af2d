//! Brings the schema up to date, as `migrations/clickhouse/README.md` says.

mod cluster;

use clickhouse::Row;
use clickhouse::sql::Identifier;
use serde::{Deserialize, Serialize};

use crate::{Error, Warehouse};

/// Every file, in order.
const FILES: &[(&str, &str)] = &[
    ("0001_events.sql", include_str!("../../../migrations/clickhouse/0001_events.sql")),
    ("0002_visits.sql", include_str!("../../../migrations/clickhouse/0002_visits.sql")),
    ("0003_visit_times.sql", include_str!("../../../migrations/clickhouse/0003_visit_times.sql")),
    ("0004_tallies.sql", include_str!("../../../migrations/clickhouse/0004_tallies.sql")),
];

#[derive(Row, Serialize, Deserialize)]
struct Applied {
    name: String,
}

impl Warehouse {
    /// Creates the database if missing and applies what wasn't applied yet. Several processes may do so at once:
    /// every statement may run twice.
    ///
    /// # Errors
    /// ClickHouse is away, or refuses a statement.
    pub async fn migrate(&self) -> Result<(), Error> {
        let server = self.client.clone().with_database("default");
        let everywhere = self.everywhere();
        let create = format!("CREATE DATABASE IF NOT EXISTS ?{everywhere}");
        server.query(&create).bind(Identifier(&self.database)).execute().await?;
        let engine = match self.cluster.as_str() {
            "" => "ReplacingMergeTree",
            // One list for all shards.
            _ => {
                "ReplicatedReplacingMergeTree('/clickhouse/tables/{database}/schema_migrations', '{shard}-{replica}')"
            }
        };
        let create = format!(
            "CREATE TABLE IF NOT EXISTS schema_migrations{everywhere}
             (name String, applied_at DateTime DEFAULT now()) ENGINE = {engine} ORDER BY name"
        );
        // Raw: a `?` or a brace is what it is.
        self.client.query_raw(&create).execute().await?;
        let applied =
            self.client.query("SELECT DISTINCT name FROM schema_migrations").fetch_all::<Applied>().await?;
        for (file, sql) in FILES {
            if applied.iter().any(|done| done.name == *file) {
                continue;
            }
            self.apply(file, sql).await.map_err(|source| Error::Migration { file, source })?;
            tracing::info!(file, "clickhouse migration applied");
        }
        Ok(())
    }

    async fn apply(&self, file: &str, sql: &str) -> Result<(), clickhouse::error::Error> {
        for statement in statements(sql) {
            let told = match self.cluster.as_str() {
                "" => vec![statement.to_owned()],
                name => cluster::rendered(statement, name).ok_or_else(|| {
                    clickhouse::error::Error::Custom("a statement has no form for clusters".to_owned())
                })?,
            };
            for statement in told {
                // Raw: a `?` in a file is a `?`.
                self.client.query_raw(&statement).execute().await?;
            }
        }
        let mut record =
            self.client.insert::<Applied>("schema_migrations").await?.with_setting("async_insert", "0");
        record.write(&Applied { name: file.to_owned() }).await?;
        record.end().await
    }
}

/// The file's statements: each ends with `;` at the end of a line.
fn statements(sql: &str) -> impl Iterator<Item = &str> {
    sql.split(";\n").map(str::trim).filter(|statement| !statement.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_folder_is_applied_in_order() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../migrations/clickhouse");
        let mut names: Vec<_> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.ends_with(".sql"))
            .collect();
        names.sort();
        assert_eq!(names, FILES.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    }

    #[test]
    fn a_semicolon_ends_a_statement_only_at_a_lines_end() {
        let found: Vec<_> = statements("-- a; b\nSELECT ';';\n\nSELECT 2;\n").collect();
        assert_eq!(found, ["-- a; b\nSELECT ';'", "SELECT 2"]);
    }
}
