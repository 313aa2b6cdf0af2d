//! What the user set, by `--set` or the environment, and which service knows it.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail};
use service::config::{BASE_DEFAULTS, Defaults};
use toml::Table;

use crate::stack_file::NAMES;

/// The user's own settings, as far as they decide what is started here.
#[derive(Debug, Clone, Default)]
pub(crate) struct UserSettings(Vec<(String, String)>);

impl UserSettings {
    /// From `--set`, or else the environment.
    pub(crate) fn new(set: &[String]) -> Result<Self> {
        let mut user_settings = Vec::new();
        for (name, value) in service::config::Sources::from_process(None, Vec::new()).environment {
            if let Some(key) = key_of(&name) {
                user_settings.push((key, value));
            }
        }
        for entry in set {
            let (key, value) = entry.split_once('=').with_context(|| format!("--set {entry} has no `=`"))?;
            user_settings.push((key.trim().to_owned(), value.to_owned()));
        }
        let known = NAMES.into_iter().map(keys_of).collect::<Result<Vec<_>>>()?;
        for (key, _) in &user_settings {
            if !known.iter().any(|keys| keys.have(key)) {
                if let Some(new) = new_path_of(key) {
                    bail!("`{key}` is now called `{new}`");
                }
                bail!("no service has a setting `{key}`; each service's config.toml lists its own");
            }
        }
        Ok(Self(user_settings))
    }

    /// What was wished for a key, if anything.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().rev().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// Whether anything was wished for below a section.
    pub(crate) fn has_any_below(&self, section: &str) -> bool {
        self.0.iter().any(|(name, _)| is_below(name, section))
    }
}

/// The key that an environment variable sets, if it is one of ours.
pub(crate) fn key_of(variable: &str) -> Option<String> {
    let key = variable.strip_prefix(service::config::ENVIRONMENT_PREFIX)?;
    // The cache's folder is the sandbox's business, before there are services.
    (variable != "WEBRUNTIME_CACHE_DIR").then(|| key.to_ascii_lowercase().replace("__", "."))
}

/// A service's commented defaults.
pub(crate) fn defaults_of(name: &str) -> Defaults {
    match name {
        "edge-server" => edge_server::DEFAULTS,
        "control-plane" => control_plane::DEFAULTS,
        "collector" => collector::DEFAULTS,
        _ => job_runner::DEFAULTS,
    }
}

/// Returns the new path of a key that any service has renamed.
fn new_path_of(key: &str) -> Option<String> {
    NAMES.into_iter().map(defaults_of).chain([BASE_DEFAULTS]).find_map(|defaults| defaults.new_path(key))
}

/// The keys a service knows.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    /// `section.key`.
    named: BTreeSet<String>,
    /// Sections that take names only the operator knows, such as those of providers.
    open: BTreeSet<String>,
}

impl Keys {
    /// Whether the service knows a key.
    pub(crate) fn have(&self, key: &str) -> bool {
        self.named.contains(key) || self.open.iter().any(|section| is_below(key, section))
    }
}

fn is_below(key: &str, section: &str) -> bool {
    key.strip_prefix(section).is_some_and(|rest| rest.starts_with('.'))
}

/// Every key of a service's defaults, those of the base configuration included.
pub(crate) fn keys_of(name: &str) -> Result<Keys> {
    let mut keys = Keys::default();
    for defaults in [defaults_of(name), BASE_DEFAULTS] {
        let table: Table = toml::from_str(defaults.toml)?;
        for (section, value) in table {
            for (key, value) in value.as_table().into_iter().flatten() {
                let key = format!("{section}.{key}");
                if value.as_table().is_some_and(Table::is_empty) {
                    keys.open.insert(key.clone());
                }
                keys.named.insert(key);
            }
        }
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_of_the_operators_own_names_takes_any_name() {
        let wished = |set: &str| UserSettings::new(&[set.to_owned()]);
        let provider = wished("signin.providers.example.client_id=x").unwrap();
        assert!(provider.has_any_below("signin.providers"));
        assert!(!wished("signin.local=true").unwrap().has_any_below("signin.providers"));
        for unknown in ["signin.providersx.a=1", "signin.nothing=1", "providers.a.b=1"] {
            assert!(wished(unknown).is_err(), "{unknown}");
        }
    }
}
