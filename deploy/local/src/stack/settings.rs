//! The services' settings in a local run. Their defaults are those of production, so this sets what they leave open.
//!
//! The data directory has one TOML file per service. It overrides the defaults; the environment and `--set` override it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use super::backends::Urls;
use super::user_settings::UserSettings;
use crate::folder::Folder;
use crate::stack_file::{NAMES, Service};

/// The installation's secrets, generated once.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Secrets {
    pub(crate) master_key: String,
    pub(crate) key_pepper: String,
    pub(crate) edge_token: String,
}

impl Secrets {
    const FILE: &str = "secrets.json";

    /// As [`Self::of`], with the master keys of the user's settings if there are any: the runner encrypts, too.
    pub(crate) fn configured(folder: &Folder, user_settings: &UserSettings) -> Result<Self> {
        let mut secrets = Self::of(folder)?;
        if let Some(keys) = user_settings.get("secrets.master_key") {
            keys.clone_into(&mut secrets.master_key);
        }
        Ok(secrets)
    }

    /// Reads the secrets from the data directory. Generates them if they are missing.
    pub(crate) fn of(folder: &Folder) -> Result<Self> {
        if let Some(secrets) = folder.read_json(Self::FILE)? {
            return Ok(secrets);
        }
        let rng = service::Rng::system();
        let secret = || hex::encode(rng.bytes::<32>());
        let secrets = Self { master_key: secret(), key_pepper: secret(), edge_token: secret() };
        folder.write_json(Self::FILE, &secrets)?;
        Ok(secrets)
    }
}

/// The settings that several services share.
pub(crate) struct Settings<'a> {
    pub(crate) base_url: &'a str,
    pub(crate) sites_domain: &'a str,
    pub(crate) urls: &'a Urls,
    pub(crate) secrets: &'a Secrets,
    pub(crate) services: &'a BTreeMap<String, Service>,
    /// The address for https, unless it is off.
    pub(crate) https: Option<SocketAddr>,
    /// Location databases; empty if there is none.
    pub(crate) location_files: &'a [PathBuf],
    /// Enables local sign-in because no provider is configured.
    pub(crate) local_sign_in: bool,
}

/// Addresses that outgoing calls may reach besides the public internet: this machine.
const LOOPBACK: [&str; 4] = ["127.0.0.0/8", "::1", "localhost", "*.localhost"];

impl Settings<'_> {
    /// Writes the services' files.
    pub(crate) fn write(&self, folder: &Folder) -> Result<()> {
        std::fs::create_dir_all(folder.part("settings"))?;
        for name in NAMES {
            let table = self.of(name, folder)?;
            folder.write(&format!("settings/{name}.toml"), &toml::to_string(&table)?)?;
        }
        Ok(())
    }

    fn of(&self, name: &str, folder: &Folder) -> Result<Table> {
        let address = |url: &str| url.trim_start_matches("http://").to_owned();
        let service = |name: &str| self.services.get(name).with_context(|| format!("no service {name}"));
        let mut all = Table::new();
        let mut put = |section: &str, key: &str, value: Value| {
            let table = all.entry(section).or_insert_with(|| Value::Table(Table::new()));
            if let Value::Table(table) = table {
                table.insert(key.to_owned(), value);
            }
        };
        let text = |text: &str| Value::String(text.to_owned());
        let loopback = || Value::Array(LOOPBACK.into_iter().map(text).collect());
        put("listen", "main", text(&address(&service(name)?.url)));
        put("listen", "ops", text(&address(service(name)?.metrics_url.trim_end_matches("/metrics"))));
        // There is no balancer that has to notice a shutdown.
        put("listen", "drain", text("0s"));
        put("store", "url", text(&self.urls.postgres));
        put("redis", "url", text(&self.urls.redis));
        if name != "edge-server" {
            put("warehouse", "url", text(&self.urls.clickhouse));
            put("warehouse", "user", text(&self.urls.clickhouse_user));
            put("warehouse", "password", text(&self.urls.clickhouse_password));
        }
        if name != "collector" {
            put("http", "base_url", text(self.base_url));
            put("http", "sites_domain", text(self.sites_domain));
        }
        if name != "collector" {
            put("blobs", "url", text(&folder.part("blobs").display().to_string()));
        }
        let keys = if name == "collector" { "salts" } else { "secrets" };
        put(keys, "master_key", text(&self.secrets.master_key));
        if name != "job-runner" {
            put("secrets", "edge_token", text(&self.secrets.edge_token));
        }
        match name {
            "control-plane" => {
                put("secrets", "key_pepper", text(&self.secrets.key_pepper));
                // All local clients have one address, also when a test or a bench acts for many accounts.
                put("api", "max_concurrent_per_address", Value::Integer(0));
                put("trial", "max_per_hour", Value::Integer(1_000));
                put("trial", "max_per_day", Value::Integer(24_000));
                put("upgrade", "mode", text("instant"));
                put("signin", "local", Value::Boolean(self.local_sign_in));
                put("signin", "allow", loopback());
                put("outbound", "allow", loopback());
                put("signin", "max_attempts_per_hour", Value::Integer(1_000));
            }
            "edge-server" => {
                put("listen", "https", text(&self.https.map(|https| https.to_string()).unwrap_or_default()));
                // Every client is on this machine and has its address.
                put("connections", "max_per_address", Value::Integer(0));
                put("upstreams", "control_plane", text(&service("control-plane")?.url));
                put("upstreams", "collector", text(&service("collector")?.url));
                put("forms", "max_submissions_per_minute", Value::Integer(0));
                put("forms", "max_submissions_per_day", Value::Integer(0));
            }
            "collector" => {
                put("segments", "folder", text(&folder.part("segments").display().to_string()));
                put("collector", "accept_event_time", Value::Boolean(true));
                let files = self.location_files.iter().map(|file| text(&file.display().to_string()));
                put("collector", "location_files", Value::Array(files.collect()));
            }
            _ => put("outbound", "allow", loopback()),
        }
        Ok(all)
    }
}
