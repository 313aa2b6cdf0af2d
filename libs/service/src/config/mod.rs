//! Settings in layers: a commented default file built into the program (it is the manual), then a file, then the
//! environment, then `--set`. The defaults say which keys exist and of what type they are; nothing else is taken.
//!
//! An environment variable `WEBRUNTIME_<SECTION>__<KEY>` and a `--set section.key=value` name the same thing. One
//! such list serves all four services: an entry whose section a service doesn't have is ignored by it and
//! reported back, while a wrong key in a section it has is refused.

mod chassis;
pub mod duration;
mod layers;
mod refusal;
mod typed;

use std::path::PathBuf;

use layers::Merged;
use serde::de::DeserializeOwned;
use toml::Table;

pub use chassis::{CHASSIS_DEFAULTS, Chassis, Listen};
pub use refusal::Error;
pub use secrecy::{ExposeSecret, SecretString as Secret};

/// The start of every environment variable that is a setting.
pub const ENVIRONMENT_PREFIX: &str = "WEBRUNTIME_";

/// The standard variable that turns OTLP on, whatever program it is set for.
pub(crate) const OTLP_VARIABLE: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// Where settings come from besides the defaults, weakest first.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// A TOML file with any part of the default file's keys.
    pub file: Option<PathBuf>,
    /// Environment variables; those that don't start with [`ENVIRONMENT_PREFIX`] are passed over.
    pub environment: Vec<(String, String)>,
    /// `section.key=value`, the strongest.
    pub set: Vec<String>,
}

impl Sources {
    /// The given file and `--set` list with this process's environment.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this is where settings are read from the environment")]
    pub fn from_process(file: Option<PathBuf>, set: Vec<String>) -> Self {
        let environment = std::env::vars()
            .filter(|(name, _)| name.starts_with(ENVIRONMENT_PREFIX) || name == OTLP_VARIABLE);
        Self { file, environment: environment.collect(), set }
    }
}

/// A service's settings, and what was said to somebody else.
#[derive(Clone, Debug)]
pub struct Loaded<C> {
    /// The service's own sections.
    pub config: C,
    /// The sections every service has: `[listen]`, `[telemetry]`.
    pub chassis: Chassis,
    /// Environment and `--set` entries (names only) whose section this service doesn't have.
    pub unused: Vec<String>,
}

/// Reads a service's settings: `defaults_toml` overlaid by `sources`.
///
/// `C` holds the default file's sections without `[listen]`, and should derive `deny_unknown_fields`, so that the
/// file and the struct can't drift apart. The chassis adds `[telemetry]`.
///
/// # Errors
/// Names the key and where the wrong value came from.
pub fn load<C: DeserializeOwned>(defaults_toml: &str, sources: &Sources) -> Result<Loaded<C>, Error> {
    let defaults = defaults(defaults_toml)?;
    let mut merged = layers::merge(&defaults, sources)?;
    let mut shared = Table::new();
    for section in ["listen", "telemetry"] {
        if let Some(value) = merged.table.remove(section) {
            shared.insert(section.into(), value);
        }
    }
    let own = std::mem::take(&mut merged.table);
    Ok(Loaded { config: read(own, &merged)?, chassis: read(shared, &merged)?, unused: merged.unused })
}

fn defaults(defaults_toml: &str) -> Result<Table, Error> {
    let wrong = |reason: String| Error::Defaults { reason };
    let mut defaults: Table = toml::from_str(defaults_toml).map_err(|error| wrong(error.to_string()))?;
    let shared: Table = toml::from_str(CHASSIS_DEFAULTS).map_err(|error| wrong(error.to_string()))?;
    for (section, value) in shared {
        if defaults.insert(section.clone(), value).is_some() {
            return Err(wrong(format!("[{section}] belongs to the chassis")));
        }
    }
    Ok(defaults)
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
