//! Layered settings: a commented default file built into the program, then a settings file, then the environment, then
//! `--set`. The default file is the manual and the schema: it fixes the keys and their types, and every other key is
//! an error.
//!
//! An environment variable `WEBRUNTIME_<SECTION>__<KEY>` and `--set section.key=value` name the same setting. All four
//! services can share one list of them: a service ignores an entry whose section it doesn't have and reports it in
//! [`Loaded::unused`], but rejects an unknown key in a section it has.

mod base_config;
mod config_error;
mod defaults;
pub mod duration;
mod layers;
mod typed;

use std::path::PathBuf;

use defaults::Schema;
use layers::Merged;
use serde::de::DeserializeOwned;
use toml::Table;

pub use base_config::{BASE_DEFAULTS, BaseConfig, Listen};
pub use config_error::Error;
pub use defaults::{Defaults, RenamedKeys};
pub use secrecy::{ExposeSecret, SecretString as Secret};

/// The prefix of every environment variable that is a setting.
pub const ENVIRONMENT_PREFIX: &str = "WEBRUNTIME_";

/// The standard OpenTelemetry variable that turns OTLP on.
pub(crate) const OTLP_VARIABLE: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// The sources of settings besides the defaults, weakest first.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// A TOML file with any subset of the default file's keys.
    pub file: Option<PathBuf>,
    /// Environment variables. Those without [`ENVIRONMENT_PREFIX`] are ignored.
    pub environment: Vec<(String, String)>,
    /// `section.key=value` entries, the strongest source.
    pub set: Vec<String>,
}

impl Sources {
    /// Returns the given file and `--set` list with this process's environment.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this is where settings are read from the environment")]
    pub fn from_process(file: Option<PathBuf>, set: Vec<String>) -> Self {
        let environment = std::env::vars()
            .filter(|(name, _)| name.starts_with(ENVIRONMENT_PREFIX) || name == OTLP_VARIABLE);
        Self { file, environment: environment.collect(), set }
    }
}

/// A service's settings.
#[derive(Clone, Debug)]
pub struct Loaded<C> {
    /// The service's own sections.
    pub config: C,
    /// The sections every service has: `[listen]`, `[telemetry]`.
    pub base: BaseConfig,
    /// Names of environment and `--set` entries whose section this service doesn't have.
    pub unused: Vec<String>,
}

/// Loads a service's settings: its default file, overlaid by `sources`.
///
/// `C` has the default file's sections without `[listen]`. It should derive `deny_unknown_fields`, so that the file
/// and the struct can't drift apart. [`BASE_DEFAULTS`] adds `[telemetry]`.
///
/// # Errors
/// Names the wrong key and its source. The old name of a renamed key is an error that names the new one.
pub fn load<C: DeserializeOwned>(
    defaults: impl Into<Defaults>,
    sources: &Sources,
) -> Result<Loaded<C>, Error> {
    let schema = Schema::new(defaults.into())?;
    let mut merged = layers::merge(&schema, sources)?;
    let mut base = Table::new();
    for section in ["listen", "telemetry"] {
        if let Some(value) = merged.table.remove(section) {
            base.insert(section.into(), value);
        }
    }
    let own = std::mem::take(&mut merged.table);
    Ok(Loaded { config: read(own, &merged)?, base: read(base, &merged)?, unused: merged.unused })
}

fn read<T: DeserializeOwned>(table: Table, merged: &Merged) -> Result<T, Error> {
    serde_path_to_error::deserialize(toml::Value::Table(table)).map_err(|error| {
        let key = error.path().to_string();
        let origin = merged.origin(&key).to_owned();
        Error::Value { origin, key, reason: error.into_inner().message().trim().to_owned() }
    })
}

#[cfg(test)]
mod tests;
