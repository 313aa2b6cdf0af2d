//! Applies the migrations, as described in `migrations/clickhouse/README.md`.

mod cluster;
mod files;
mod schema;
mod state;

pub use schema::SchemaMismatch;
pub use state::{Migration, MigrationState};

use clickhouse::sql::Identifier;
use files::{Applied, FILES};

use crate::client::Warehouse;
use crate::error::Error;

impl Warehouse {
    /// Creates the database if it does not exist and applies pending migrations. Concurrent processes may do so: every
    /// statement is idempotent.
    pub async fn migrate(&self) -> Result<(), Error> {
        let server = self.client.clone().with_database("default");
        let on_cluster = self.on_cluster();
        let create = format!("CREATE DATABASE IF NOT EXISTS ?{on_cluster}");
        server.query(&create).bind(Identifier(&self.database)).execute().await?;
        let engine = match self.cluster.as_str() {
            "" => "ReplacingMergeTree",
            // One table of applied migrations for all shards.
            _ => {
                "ReplicatedReplacingMergeTree('/clickhouse/tables/{database}/schema_migrations', '{shard}-{replica}')"
            }
        };
        let create = format!(
            "CREATE TABLE IF NOT EXISTS schema_migrations{on_cluster}
             (name String, applied_at DateTime DEFAULT now()) ENGINE = {engine} ORDER BY name"
        );
        // Raw, because `?` and braces are not placeholders here.
        self.client.query_raw(&create).execute().await?;
        let applied =
            self.client.query("SELECT DISTINCT name FROM schema_migrations").fetch_all::<Applied>().await?;
        for (file, sql) in FILES {
            if applied.iter().any(|one| one.name == *file) {
                continue;
            }
            self.apply(file, sql).await.map_err(|source| Error::Migration { file, source })?;
            tracing::info!(file, "clickhouse migration applied");
        }
        Ok(())
    }

    async fn apply(&self, file: &str, sql: &str) -> Result<(), clickhouse::error::Error> {
        for statement in statements(sql) {
            let statements = match self.cluster.as_str() {
                "" => vec![statement.to_owned()],
                name => cluster::for_cluster(statement, name).ok_or_else(|| {
                    clickhouse::error::Error::Custom("a statement has no cluster variant".to_owned())
                })?,
            };
            for statement in statements {
                // Raw, because `?` in a file is not a placeholder.
                self.client.query_raw(&statement).execute().await?;
            }
        }
        let mut record =
            self.client.insert::<Applied>("schema_migrations").await?.with_setting("async_insert", "0");
        record.write(&Applied { name: file.to_owned() }).await?;
        record.end().await
    }
}

/// Splits a file into statements. Each ends with `;` at the end of a line.
fn statements(sql: &str) -> impl Iterator<Item = &str> {
    sql.split(";\n").map(str::trim).filter(|statement| !statement.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_files_of_the_folder_are_applied_in_order() {
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
    fn a_semicolon_ends_a_statement_only_at_the_end_of_a_line() {
        let found: Vec<_> = statements("-- a; b\nSELECT ';';\n\nSELECT 2;\n").collect();
        assert_eq!(found, ["-- a; b\nSELECT ';'", "SELECT 2"]);
    }

    #[test]
    fn every_statement_has_a_cluster_variant() {
        for (file, sql) in FILES {
            for statement in statements(sql) {
                let rendered =
                    cluster::for_cluster(statement, "main").unwrap_or_else(|| panic!("{file}: {statement}"));
                assert!(rendered.iter().all(|one| one.contains(" ON CLUSTER 'main' ")), "{rendered:?}");
                assert!(!rendered.iter().any(|one| one.contains("non_replicated")), "{rendered:?}");
            }
        }
        assert_eq!(cluster::for_cluster("OPTIMIZE TABLE events", "main"), None);
    }

    /// A cluster needs ZooKeeper, which the tests lack, so this only checks the syntax.
    #[tokio::test]
    async fn the_engine_parses_every_cluster_statement() {
        let clickhouse = sandbox::test::clickhouse().await;
        let client = clickhouse::Client::default().with_url(&clickhouse.url).with_user(&clickhouse.user);
        let client = client.with_password(&clickhouse.password);
        for statement in FILES
            .iter()
            .flat_map(|(_, sql)| statements(sql))
            .filter_map(|one| cluster::for_cluster(one, "main"))
            .flatten()
        {
            let formatted =
                client.query("SELECT formatQuery(?)").bind(statement).fetch_one::<String>().await.unwrap();
            assert!(formatted.contains("ON CLUSTER main"), "{formatted}");
        }
    }
}
