//! Backups of the database by ClickHouse's own `BACKUP` and `RESTORE`, for one server. The server writes and reads the files.

use std::collections::BTreeMap;
use std::time::Duration;

use clickhouse::Row;
use serde::Deserialize;
use uuid::Uuid;

use crate::client::{QUERY_TIMEOUT, REWRITE_TIMEOUT, STORE_TIMEOUT, Warehouse, with_timeout};
use crate::deletion::TABLES;
use crate::error::Error;

/// A backup on the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupPlace {
    /// A disk of the server's configuration; empty for the folder of `backups.allowed_path`.
    pub disk: String,
    /// The name of its folder there.
    pub name: String,
}

impl BackupPlace {
    fn expression(&self) -> String {
        match self.disk.as_str() {
            "" => format!("File('{}')", quoted(&self.name)),
            disk => format!("Disk('{}', '{}')", quoted(disk), quoted(&self.name)),
        }
    }
}

fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\'', "\\'")
}

/// What a backup or a restore has done so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BackupState {
    Running,
    Done {
        /// Bytes of the backup's own files, without those of its base.
        bytes: u64,
    },
    Failed(String),
}

#[derive(Row, Deserialize)]
struct BackupRow {
    status: String,
    error: String,
    total_size: u64,
}

/// An account and a site with rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct StoredSite {
    pub account_id: Uuid,
    pub site_id: Uuid,
}

impl Warehouse {
    /// Begins a backup, of what changed since `base` if there is one. `id` must be new.
    pub async fn begin_backup(
        &self,
        id: &str,
        to: &BackupPlace,
        base: Option<&BackupPlace>,
    ) -> Result<(), Error> {
        let base = base.map(|base| format!(", base_backup = {}", base.expression())).unwrap_or_default();
        let sql = format!(
            "BACKUP DATABASE `{}` TO {} SETTINGS id = '{}'{base} ASYNC",
            self.database,
            to.expression(),
            quoted(id)
        );
        self.execute_on_server(&sql, STORE_TIMEOUT).await
    }

    /// Begins the restore of a backup into a database that doesn't exist.
    pub async fn begin_restore(&self, id: &str, from: &BackupPlace) -> Result<(), Error> {
        let sql = format!(
            "RESTORE DATABASE `{}` FROM {} SETTINGS id = '{}' ASYNC",
            self.database,
            from.expression(),
            quoted(id)
        );
        self.execute_on_server(&sql, STORE_TIMEOUT).await
    }

    /// Returns the state of a backup or a restore that this server began.
    pub async fn backup_state(&self, id: &str) -> Result<BackupState, Error> {
        let server = self.client.clone().with_database("default");
        let sql = "SELECT toString(status) AS status, error, total_size FROM system.backups WHERE id = ?";
        let found: Option<BackupRow> =
            with_timeout(QUERY_TIMEOUT, server.query(sql).bind(id).fetch_optional()).await?;
        Ok(match found {
            None => BackupState::Failed("the server no longer knows it: it was restarted".to_owned()),
            Some(row) => match row.status.as_str() {
                "BACKUP_CREATED" | "RESTORED" => BackupState::Done { bytes: row.total_size },
                "CREATING_BACKUP" | "RESTORING" => BackupState::Running,
                _ => BackupState::Failed(row.error),
            },
        })
    }

    /// Deletes the database with all tables.
    pub async fn drop_database(&self) -> Result<(), Error> {
        self.execute_on_server(&format!("DROP DATABASE IF EXISTS `{}` SYNC", self.database), REWRITE_TIMEOUT)
            .await
    }

    /// Returns the number of rows of each table with rows of sites, without replaced ones; empty if the database does not exist.
    pub async fn count_rows(&self) -> Result<BTreeMap<String, u64>, Error> {
        let server = self.client.clone().with_database("default");
        let sql = "SELECT name, engine FROM system.tables WHERE database = ? AND name IN ?";
        let tables: Vec<(String, String)> =
            with_timeout(QUERY_TIMEOUT, server.query(sql).bind(&self.database).bind(TABLES).fetch_all())
                .await?;
        let mut counts = BTreeMap::new();
        for (name, engine) in tables {
            // A merge, of which a restore causes some, removes replaced rows.
            let merged = if engine.contains("Replacing") { " FINAL" } else { "" };
            let count = self.client.query(&format!("SELECT count() FROM `{name}`{merged}"));
            let rows = with_timeout(REWRITE_TIMEOUT, count.fetch_one::<u64>()).await?;
            counts.insert(name, rows);
        }
        Ok(counts)
    }

    /// Returns all sites with rows, sorted.
    pub async fn list_stored_sites(&self) -> Result<Vec<StoredSite>, Error> {
        let mut sites = Vec::new();
        for table in TABLES {
            let sql = format!("SELECT DISTINCT account_id, site_id FROM {table}");
            let rows: Vec<SiteRow> =
                with_timeout(REWRITE_TIMEOUT, self.client.query(&sql).fetch_all()).await?;
            sites.extend(
                rows.into_iter().map(|row| StoredSite { account_id: row.account_id, site_id: row.site_id }),
            );
        }
        sites.sort_unstable();
        sites.dedup();
        Ok(sites)
    }

    /// Runs a statement outside our database, which may not exist.
    async fn execute_on_server(&self, sql: &str, timeout: Duration) -> Result<(), Error> {
        let server = self.client.clone().with_database("default");
        with_timeout(timeout, server.query(sql).execute()).await
    }
}

#[derive(Row, Deserialize)]
struct SiteRow {
    #[serde(with = "clickhouse::serde::uuid")]
    account_id: Uuid,
    #[serde(with = "clickhouse::serde::uuid")]
    site_id: Uuid,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_folder_or_a_disk_and_its_name_is_quoted() {
        let place =
            |disk: &str, name: &str| BackupPlace { disk: disk.into(), name: name.into() }.expression();
        assert_eq!(place("", "20261127T165000Z"), "File('20261127T165000Z')");
        assert_eq!(place("s3", "a"), "Disk('s3', 'a')");
        assert_eq!(place("", "a'b\\"), r"File('a\'b\\')");
    }
}
