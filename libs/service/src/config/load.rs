//! Loading a service's settings.

use std::path::PathBuf;

use serde::de::DeserializeOwned;
use toml::Table;

use super::base_config::BaseConfig;
use super::config_error::Error;
use super::defaults::Defaults;
use super::insecure;
use super::layers::{self, Merged};
use super::schema::Schema;
use super::secret_files;
use super::sources::Sources;

/// A service's settings.
#[derive(Clone, Debug)]
pub struct Loaded<C> {
    /// The service's own sections.
    pub config: C,
    /// The sections every service has: `[listen]`, `[telemetry]`.
    pub base: BaseConfig,
    /// Names of environment and `--set` entries for sections that this service doesn't have.
    pub unused: Vec<String>,
    /// The files that secrets were read from.
    pub secret_files: Vec<PathBuf>,
}

/// Loads a service's settings: its default file, overlaid by `sources`.
///
/// `C` has the default file's sections without `[listen]`. It should derive `deny_unknown_fields`, so that the file
/// and the struct can't drift apart. [`BASE_DEFAULTS`](super::BASE_DEFAULTS) adds `[telemetry]` and
/// `[insecure]`.
///
/// # Errors
/// Names the wrong key and its source. The old name of a renamed key is an error that names the new one. Example values of
/// secrets and unsafe combinations are one error that names all of them.
pub fn load<C: DeserializeOwned>(
    defaults: impl Into<Defaults>,
    sources: &Sources,
) -> Result<Loaded<C>, Error> {
    let schema = Schema::new(defaults.into())?;
    let mut merged = layers::merge(&schema, sources)?;
    let files = secret_files::read(&schema.table, &mut merged)?;
    let problems = insecure::problems(&schema.table, &merged, sources);
    if !problems.is_empty() {
        return Err(Error::Insecure { problems });
    }
    // Only the checks above read it.
    merged.table.remove("insecure");
    let mut base = Table::new();
    for section in ["listen", "telemetry"] {
        if let Some(value) = merged.table.remove(section) {
            base.insert(section.into(), value);
        }
    }
    let own = std::mem::take(&mut merged.table);
    let mut base: BaseConfig = read(base, &merged)?;
    base.telemetry.settings_warnings = files.warnings;
    let config = read(own, &merged)?;
    Ok(Loaded { config, base, unused: merged.unused, secret_files: files.paths })
}

fn read<T: DeserializeOwned>(table: Table, merged: &Merged) -> Result<T, Error> {
    serde_path_to_error::deserialize(toml::Value::Table(table)).map_err(|error| {
        let key = error.path().to_string();
        let origin = merged.origin(&key).to_owned();
        Error::Value { origin, key, reason: error.into_inner().message().trim().to_owned() }
    })
}
