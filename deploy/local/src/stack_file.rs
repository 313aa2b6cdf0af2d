//! `stack.json`: the running system, for users and programs.

use std::collections::BTreeMap;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::folder::Folder;

/// The services, in the order of a request.
pub(crate) const NAMES: [&str; 4] = ["edge-server", "control-plane", "collector", "job-runner"];

/// The content of `stack.json`. It contains the stores' passwords, so only its owner can read it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct StackFile {
    /// The supervising process. Ending it ends the whole system.
    pub pid: u32,
    /// The public URL of the API and the forms.
    pub base_url: String,
    /// The parent domain of sites: `<name>.<sites_domain>`.
    pub sites_domain: String,
    /// The port of `base_url`.
    pub http_port: u16,
    /// The port for https; `None` if it is off.
    pub https_port: Option<u16>,
    /// The services by name.
    pub services: BTreeMap<String, Service>,
    /// The stores by name.
    #[serde(default)]
    pub stores: BTreeMap<String, Store>,
    /// Postgres's URL, with its password.
    pub postgres_url: String,
    /// Redis's URL.
    pub redis_url: String,
    /// ClickHouse's URL.
    pub clickhouse_url: String,
    /// ClickHouse's user.
    pub clickhouse_user: String,
    /// ClickHouse's password.
    pub clickhouse_password: String,
    /// The directory of logs.
    pub log_dir: String,
}

/// A running service.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Service {
    /// The service's process id.
    pub pid: u32,
    /// The service's URL.
    pub url: String,
    /// The URL of its metrics. `/healthz` and `/readyz` are on the same port.
    pub metrics_url: String,
}

/// A store that the services use.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Store {
    /// The server's process id; `None` if the runner did not start it.
    pub pid: Option<u32>,
    /// Its host and port.
    pub address: String,
}

impl StackFile {
    /// The file's name in the data directory.
    pub const NAME: &str = "stack.json";

    pub(crate) fn write(&self, folder: &Folder) -> Result<()> {
        folder.write_json(Self::NAME, self)
    }

    pub(crate) fn read(folder: &Folder) -> Result<Option<Self>> {
        folder.read_json(Self::NAME)
    }
}
