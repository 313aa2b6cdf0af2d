//! What backups and restores work on.

use std::path::PathBuf;

use blobs::Blobs;
use service::{Clock, Rng};
use store::Db;
use warehouse::Warehouse;

use super::config::Config;

/// An installation with its settings. `report` gets a line for each step.
pub struct Installation<'a> {
    pub config: &'a Config,
    pub db: &'a Db,
    pub warehouse: &'a Warehouse,
    pub redis: &'a cache::Config,
    pub blobs: Blobs,
    pub secrets: Secrets,
    pub clock: &'a Clock,
    pub rng: &'a Rng,
    pub report: &'a (dyn Fn(&str) + Sync),
}

/// The secrets that must never be in a backup folder.
#[derive(Clone)]
pub struct Secrets {
    /// The setting `secrets.master_key`.
    pub master_key: String,
    /// The setting `secrets.key_pepper`.
    pub key_pepper: String,
    /// The files of all secrets of the settings.
    pub files: Vec<PathBuf>,
}

impl std::fmt::Debug for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Secrets").field("files", &self.files).finish_non_exhaustive()
    }
}
