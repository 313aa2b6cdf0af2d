//! What to restore, and the result.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use super::super::parts::Part;
use super::super::parts::blob_pool::RestoredBlobs;
use super::super::parts::pgbackrest::Target;

/// What to restore.
#[derive(Debug, Clone)]
pub struct RestoreRequest {
    /// The backup; the last one if `None`.
    pub backup: Option<String>,
    pub target: Target,
    /// Overwrite stores that are not empty.
    pub replace: bool,
    pub steps: Steps,
    pub skip: BTreeSet<Part>,
    /// A further list of deletions.
    pub deletions: Option<PathBuf>,
    /// How long Postgres may take to start and to replay its log.
    pub wait: Duration,
}

/// The steps of a restore. Between them Postgres is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Steps {
    All,
    /// The deletions of the running Postgres are noted, for a restore to a point in time.
    Deletions,
    /// The files of Postgres alone.
    PostgresFiles,
    /// Everything after Postgres was started.
    AfterStart,
}

/// What was restored.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Restored {
    pub backup: String,
    /// Rows of Postgres now, and those at the end of the backup.
    pub rows: BTreeMap<String, (i64, i64)>,
    pub clickhouse_rows: BTreeMap<String, u64>,
    pub blobs: Option<RestoredBlobs>,
    pub purged: Purged,
    /// Keys that were deleted in Redis.
    pub redis_keys: u64,
    pub seconds: BTreeMap<&'static str, f64>,
}

/// Deletions that the restore repeated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Purged {
    /// Accounts that were deleted after the restored point in time.
    pub accounts: u64,
    pub sites: u64,
    /// Sites with events in ClickHouse that Postgres does not know.
    pub unknown_sites: u64,
}
