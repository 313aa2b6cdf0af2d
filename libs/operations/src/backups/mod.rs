//! Backups and restores: Postgres by pgBackRest, ClickHouse by its own `BACKUP`, blobs copied into one folder for all backups.
//!
//! Decisions: `libs/operations/docs/0002-backups.md`.

mod check;
mod config;
mod create;
mod deletions;
mod expire;
mod file_list;
mod folder;
mod installation;
mod manifest;
mod metrics_file;
mod parts;
mod restore;
mod secrets_apart;

pub use check::check;
pub use config::Config;
pub use create::{BackupRequest, create};
pub use folder::BackupFolder;
pub use installation::{Installation, Secrets};
pub use manifest::Manifest;
pub use parts::Part;
pub use parts::blob_pool::RestoredBlobs;
pub use parts::pgbackrest::Target;
pub use restore::{Purged, RestoreRequest, Restored, Steps, restore};
