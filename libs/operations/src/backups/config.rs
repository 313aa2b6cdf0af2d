//! The settings of backups, section `[backup]`.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde::Deserialize;

/// Section `[backup]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Holds the manifests, the blobs and, unless they are elsewhere, the other parts. Empty if backups are not set up.
    pub folder: PathBuf,
    /// The program with the arguments that each of its commands needs.
    pub pgbackrest: Vec<String>,
    /// The stanza of pgBackRest's configuration.
    pub stanza: String,
    /// The command that starts Postgres during a restore; empty if the operator does it.
    pub start_postgres: Vec<String>,
    /// A disk of ClickHouse; empty for the folder of its `backups.allowed_path`.
    pub clickhouse_disk: String,
    /// Where this program finds ClickHouse's backups; empty for `clickhouse` in `folder`.
    pub clickhouse_folder: PathBuf,
    /// A backup is a full one if the last full one is older.
    #[serde(with = "service::config::duration")]
    pub full_interval: Duration,
    /// Full backups that are kept, with those that depend on them.
    pub retained_fulls: u32,
    /// The folder of node-exporter's textfile collector; empty for no metrics.
    pub metrics_folder: PathBuf,
}

impl Config {
    /// Rejects settings with which no backup can be made.
    pub fn check(&self) -> Result<()> {
        ensure!(
            !self.folder.as_os_str().is_empty(),
            "backup.folder is not set: name a folder on a disk of its own (deploy/docs/backups.md)"
        );
        ensure!(
            self.folder.is_absolute(),
            "backup.folder must be an absolute path, not {}",
            self.folder.display()
        );
        ensure!(
            !self.pgbackrest.is_empty(),
            "backup.pgbackrest is empty: it names the program, such as [\"pgbackrest\"]"
        );
        ensure!(self.retained_fulls > 0, "backup.retained_fulls must be at least 1");
        Ok(())
    }

    /// Returns where this program finds ClickHouse's backups.
    pub(super) fn clickhouse_folder(&self) -> PathBuf {
        match self.clickhouse_folder.as_os_str().is_empty() {
            true => self.folder.join("clickhouse"),
            false => self.clickhouse_folder.clone(),
        }
    }
}
