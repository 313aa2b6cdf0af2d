//! The program's settings: those sections of the services that it needs.

use std::path::PathBuf;
use std::time::Duration;

use domain::addresses::Addresses;
use serde::Deserialize;
use service::config::{Defaults, Error, Secret, Sources, load};

/// The commented defaults.
pub(crate) const DEFAULTS: Defaults = Defaults { toml: include_str!("../config.toml"), renamed_keys: &[] };

/// The settings.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Settings {
    pub(crate) store: store::Config,
    pub(crate) warehouse: warehouse::Config,
    pub(crate) redis: cache::Config,
    pub(crate) blobs: blobs::Config,
    pub(crate) secrets: Secrets,
    pub(crate) http: Http,
    pub(crate) backup: operations::backups::Config,
    /// The files that secrets were read from.
    #[serde(skip)]
    pub(crate) secret_files: Vec<PathBuf>,
    /// Warnings of the loader.
    #[serde(skip)]
    pub(crate) warnings: Vec<String>,
    /// Whether these may be settings of an edge beyond localhost that has no TLS.
    #[serde(skip)]
    pub(crate) lacks_tls: bool,
}

/// Section `[secrets]`.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Secrets {
    pub(crate) master_key: Secret,
    pub(crate) key_pepper: Secret,
}

/// Section `[http]`.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Http {
    base_url: String,
    trusted_proxies: Vec<String>,
    pub(crate) sites_domain: String,
    pub(crate) edges: u32,
}

/// Returns the sources of settings. A service's settings file may be given: its other sections are ignored.
pub(crate) fn sources(file: Option<PathBuf>, set: Vec<String>) -> Sources {
    Sources { skips_unknown_sections: true, ..Sources::from_process(file, set) }
}

impl Settings {
    /// Loads the settings from a file, the environment and `--set`, as a service does.
    pub(crate) fn load(sources: &Sources) -> Result<Self, Error> {
        let loaded = load::<Self>(DEFAULTS, sources)?;
        let unused = loaded.unused.iter().filter(|origin| origin.starts_with("--set"));
        let unused = unused.map(|origin| format!("{origin}: this program has no such section"));
        let warnings = loaded.base.telemetry.settings_warnings.into_iter().chain(unused).collect();
        let http = &loaded.config.http;
        let is_local = Addresses::new(&http.base_url, "").is_ok_and(|addresses| addresses.is_local());
        let is_served = !is_local && !DEFAULTS.toml.contains(&format!("base_url = \"{}\"", http.base_url));
        let lacks_tls = is_served && loaded.base.listen.https.is_none() && http.trusted_proxies.is_empty();
        Ok(Self { warnings, lacks_tls, secret_files: loaded.secret_files, ..loaded.config })
    }
}

/// Parses a duration such as `60s`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|error| format!("not a duration such as 60s or 24h: {error}"))
}

#[cfg(test)]
mod tests {
    use toml::Table;

    use super::*;

    fn table(text: &str) -> Table {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn every_setting_of_a_service_is_accepted() {
        let own = table(DEFAULTS.toml);
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        for service in ["control-plane", "edge-server", "collector", "job-runner"] {
            let path = PathBuf::from(format!("{root}/{service}/config.toml"));
            let defaults = table(&std::fs::read_to_string(&path).unwrap());
            for (section, value) in &own {
                let Some(theirs) = defaults.get(section).and_then(toml::Value::as_table) else { continue };
                for key in theirs.keys() {
                    assert!(
                        value.get(key).is_some(),
                        "{service} has {section}.{key}, which this program lacks"
                    );
                }
            }
            let set = vec!["http.base_url=http://localhost:8080".to_owned()];
            let sources =
                Sources { file: Some(path), set, skips_unknown_sections: true, ..Sources::default() };
            Settings::load(&sources).unwrap();
        }
    }

    #[test]
    fn a_misspelt_section_on_the_command_line_is_a_warning() {
        let sources = Sources { set: vec!["stor.url=postgres://x".to_owned()], ..Sources::default() };
        assert_eq!(
            Settings::load(&sources).unwrap().warnings,
            ["--set stor.url: this program has no such section"]
        );
    }
}
