//! Which keys are secrets, by their names and by the defaults.

use toml::{Table, Value};

/// The end of a key that names a file.
pub(super) const SUFFIX: &str = "_file";

/// The keys of secrets in a table of the defaults: those with a sibling `X_file`.
pub(super) fn secrets_of(defaults: &Table) -> impl Iterator<Item = &str> {
    let names = defaults.iter().filter(|(_, default)| default.is_str()).map(|(key, _)| key.as_str());
    names.filter(|key| defaults.get(&format!("{key}{SUFFIX}")).is_some_and(Value::is_str))
}

/// Whether a key in a section of the operator's keys is a secret, by its name.
pub(super) fn is_secret_name(key: &str) -> bool {
    key.contains("secret") || key.contains("password")
}
