//! The manifest of a backup: what it consists of, and what a restore needs and checks. It holds no secret.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::parts::Part;

/// The format of this program's manifests. A program refuses those of a later format.
pub const FORMAT: u32 = 1;

/// The purpose of the digest by which a master key is recognized, for the id of the backup.
pub(super) const KEY_DIGEST_PURPOSE: &str = "backup";

/// A backup.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    pub format: u32,
    /// The time of its start, such as `20261127T165000Z`, which names its folder.
    pub id: String,
    /// The full backup that it depends on; its own id if it is one.
    pub full: String,
    /// The backup before it of the same full one; `None` for a full one.
    pub base: Option<String>,
    pub started_at: DateTime<Utc>,
    pub ended_at: DateTime<Utc>,
    /// The version of the program.
    pub program: String,
    /// The newest migration of Postgres.
    pub schema: i64,
    pub keys: KeyIds,
    pub postgres: Option<PostgresPart>,
    pub clickhouse: Option<ClickHousePart>,
    pub blobs: Option<BlobsPart>,
}

/// The ids of the keys without which a restore is worthless. The keys themselves are never in a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyIds {
    pub master: Vec<String>,
    /// A digest under the first master key, by which a wrong key with the same id is refused.
    pub master_digest: String,
    pub pepper: Vec<String>,
}

/// The part of Postgres.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PostgresPart {
    /// pgBackRest's name of the backup.
    pub label: String,
    /// Restores to earlier positions of the write-ahead log need an earlier backup.
    pub stop_lsn: String,
    /// Bytes that it added to the repository.
    pub bytes: u64,
    /// Rows of some tables at its end.
    pub rows: BTreeMap<String, i64>,
    pub seconds: f64,
}

/// The part of ClickHouse.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClickHousePart {
    /// The name of its folder.
    pub name: String,
    pub bytes: u64,
    /// Rows of each table before and after the backup. A restore has as many, or a number in between.
    pub rows: BTreeMap<String, (u64, u64)>,
    /// The digest of the list of its files; `None` if this program can't see them.
    pub list_sha256: Option<String>,
    pub seconds: f64,
}

/// The part of blobs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BlobsPart {
    pub count: u64,
    /// Bytes of all blobs.
    pub bytes: u64,
    /// Bytes of those that no earlier backup had.
    pub copied_bytes: u64,
    /// Blobs of which Postgres knew, and which were deleted before they were copied.
    pub gone: u64,
    pub list_sha256: String,
    pub seconds: f64,
}

impl Manifest {
    /// Returns whether it is a full backup.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.base.is_none()
    }

    /// Returns the bytes that a part added, if the backup has it.
    #[must_use]
    pub fn bytes_of(&self, part: Part) -> Option<u64> {
        match part {
            Part::Postgres => self.postgres.as_ref().map(|part| part.bytes),
            Part::ClickHouse => self.clickhouse.as_ref().map(|part| part.bytes),
            Part::Blobs => self.blobs.as_ref().map(|part| part.copied_bytes),
        }
    }

    /// Returns one line for a list.
    #[must_use]
    pub fn line(&self) -> String {
        let kind = if self.is_full() { "full" } else { "incremental" };
        let parts = Part::ALL.into_iter().map(|part| match self.bytes_of(part) {
            Some(bytes) => format!("{} {}", part.as_str(), megabytes(bytes)),
            None => format!("{} -", part.as_str()),
        });
        format!("{}  {kind:<11}  {}", self.id, parts.collect::<Vec<_>>().join("  "))
    }
}

/// Returns bytes as megabytes with one digit.
pub(crate) fn megabytes(bytes: u64) -> String {
    let tenths = bytes.div_ceil(100_000);
    format!("{}.{} MB", tenths / 10, tenths % 10)
}
