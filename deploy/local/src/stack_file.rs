//! `stack.json`: what runs in a folder, for people and programs.

use std::collections::BTreeMap;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::folder::Folder;

/// The services, from the outside in.
pub(crate) const NAMES: [&str; 4] = ["edge-server", "control-plane", "collector", "job-runner"];

/// `stack.json`: what runs, for people and programs. It holds the stores' passwords, so it is its owner's.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct StackFile {
    /// The process that watches over everything; end it to end all.
    pub pid: u32,
    /// Where API clients and visitors go.
    pub base_url: String,
    /// Sites are at `<name>.<sites_domain>`.
    pub sites_domain: String,
    /// The port of `base_url`.
    pub http_port: u16,
    /// The port of TLS; none in a local run.
    pub https_port: Option<u16>,
    /// Each service by its name.
    pub services: BTreeMap<String, Service>,
    /// Postgres, with its password.
    pub postgres_url: String,
    /// Redis.
    pub redis_url: String,
    /// ClickHouse.
    pub clickhouse_url: String,
    /// Its account.
    pub clickhouse_user: String,
    /// That account's password.
    pub clickhouse_password: String,
    /// Where logs are.
    pub log_dir: String,
}

/// Where a service is.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Service {
    /// Its process.
    pub pid: u32,
    /// Its own port.
    pub url: String,
    /// Its metrics; `/healthz` and `/readyz` are beside them.
    pub metrics_url: String,
}

impl StackFile {
    /// The file's name in the folder.
    pub const NAME: &str = "stack.json";

    pub(crate) fn write(&self, folder: &Folder) -> Result<()> {
        folder.write_json(Self::NAME, self)
    }

    pub(crate) fn read(folder: &Folder) -> Result<Option<Self>> {
        folder.read_json(Self::NAME)
    }
}
