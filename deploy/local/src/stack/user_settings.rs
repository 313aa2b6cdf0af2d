//! The user's settings, from `--set` and the environment, and the services that know them.

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail};
use service::config::{BASE_DEFAULTS, Defaults};
use toml::Table;

use crate::stack_file::NAMES;

/// The user's settings. Some of them decide which stores are started.
#[derive(Debug, Clone, Default)]
pub(crate) struct UserSettings(Vec<(String, String)>);

impl UserSettings {
    /// Collects the settings from `--set` and the environment. Fails if no service knows one of them.
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
            if !known.iter().any(|keys| keys.contains(key)) {
                if let Some(new) = new_path_of(key) {
                    bail!("`{key}` is now called `{new}`");
                }
                bail!("no service has a setting `{key}`; each service's config.toml lists its own");
            }
        }
        Ok(Self(user_settings))
    }

    /// Returns the value of a key.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().rev().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// Returns whether a key below a section is set.
    pub(crate) fn has_any_below(&self, section: &str) -> bool {
        self.0.iter().any(|(name, _)| is_below(name, section))
    }
}

/// Returns the key that an environment variable sets.
pub(crate) fn key_of(variable: &str) -> Option<String> {
    let key = variable.strip_prefix(service::config::ENVIRONMENT_PREFIX)?;
    // The sandbox's cache directory is not a setting of a service.
    (variable != "WEBRUNTIME_CACHE_DIR").then(|| key.to_ascii_lowercase().replace("__", "."))
}

/// Returns a service's defaults.
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

/// The keys of a service's settings.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    /// `section.key`.
    named: BTreeSet<String>,
    /// Sections with keys of the operator's choice, such as sign-in providers.
    open: BTreeSet<String>,
}

impl Keys {
    /// Returns whether the service knows a key.
    pub(crate) fn contains(&self, key: &str) -> bool {
        self.named.contains(key) || self.open.iter().any(|section| is_below(key, section))
    }
}

fn is_below(key: &str, section: &str) -> bool {
    key.strip_prefix(section).is_some_and(|rest| rest.starts_with('.'))
}

/// Returns every key of a service's defaults, with those of the base configuration.
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
    fn an_open_section_accepts_any_name() {
        let parse = |set: &str| UserSettings::new(&[set.to_owned()]);
        let provider = parse("signin.providers.example.client_id=x").unwrap();
        assert!(provider.has_any_below("signin.providers"));
        assert!(!parse("signin.local=true").unwrap().has_any_below("signin.providers"));
        for unknown in ["signin.providersx.a=1", "signin.nothing=1", "providers.a.b=1"] {
            assert!(parse(unknown).is_err(), "{unknown}");
        }
    }
}
