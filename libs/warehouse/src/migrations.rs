//! Brings the schema up to date, as `migrations/clickhouse/README.md` says.

use clickhouse::Row;
use clickhouse::sql::Identifier;
use serde::{Deserialize, Serialize};

use crate::{Error, Warehouse};

/// Every file, in order.
const FILES: &[(&str, &str)] = &[
    ("0001_events.sql", include_str!("../../../migrations/clickhouse/0001_events.sql")),
    ("0002_visits.sql", include_str!("../../../migrations/clickhouse/0002_visits.sql")),
    ("0004_visit_times.sql", include_str!("../../../migrations/clickhouse/0004_visit_times.sql")),
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
        server.query("CREATE DATABASE IF NOT EXISTS ?").bind(Identifier(&self.database)).execute().await?;
        self.client
            .query(
                "CREATE TABLE IF NOT EXISTS schema_migrations
                 (name String, applied_at DateTime DEFAULT now()) ENGINE = ReplacingMergeTree ORDER BY name",
            )
            .execute()
            .await?;
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
            // Raw: a `?` in a file is a `?`.
            self.client.query_raw(statement).execute().await?;
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
