//! What the user set, by `--set` or the environment, and which service knows it.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail};
use toml::Table;

use crate::stack_file::NAMES;

/// The user's own settings, as far as they decide what is started here.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wishes(Vec<(String, String)>);

impl Wishes {
    /// From `--set`, or else the environment.
    pub(crate) fn new(set: &[String]) -> Result<Self> {
        let mut wishes = Vec::new();
        for (name, value) in service::config::Sources::from_process(None, Vec::new()).environment {
            if let Some(key) = key_of(&name) {
                wishes.push((key, value));
            }
        }
        for entry in set {
            let (key, value) = entry.split_once('=').with_context(|| format!("--set {entry} has no `=`"))?;
            wishes.push((key.trim().to_owned(), value.to_owned()));
        }
        let known = NAMES.into_iter().map(keys_of).collect::<Result<Vec<_>>>()?;
        for (key, _) in &wishes {
            if !known.iter().any(|keys| keys.contains(key)) {
                bail!("no service has a setting `{key}`; each service's config.toml lists its own");
            }
        }
        Ok(Self(wishes))
    }

    /// What was wished for a key, if anything.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().rev().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }
}

/// The key that an environment variable sets, if it is one of ours.
pub(crate) fn key_of(variable: &str) -> Option<String> {
    let key = variable.strip_prefix(service::config::ENVIRONMENT_PREFIX)?;
    // The cache's folder is the sandbox's business, before there are services.
    (variable != "WEBRUNTIME_CACHE_DIR").then(|| key.to_ascii_lowercase().replace("__", "."))
}

/// A service's commented defaults.
pub(crate) fn defaults_of(name: &str) -> &'static str {
    match name {
        "edge-server" => edge_server::DEFAULTS,
        "control-plane" => control_plane::DEFAULTS,
        "collector" => collector::DEFAULTS,
        _ => job_runner::DEFAULTS,
    }
}

/// Every `section.key` of a service's defaults, the chassis' included.
pub(crate) fn keys_of(name: &str) -> Result<BTreeSet<String>> {
    let mut keys = BTreeSet::new();
    for text in [defaults_of(name), service::config::CHASSIS_DEFAULTS] {
        let table: Table = toml::from_str(text)?;
        for (section, value) in table {
            keys.extend(
                value.as_table().into_iter().flat_map(Table::keys).map(|key| format!("{section}.{key}")),
            );
        }
    }
    Ok(keys)
}
