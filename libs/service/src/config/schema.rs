//! The keys that a service knows, with the types of their values.

use toml::{Table, Value};

use super::base_config::BASE_DEFAULTS;
use super::config_error::Error;
use super::defaults::Defaults;

/// The defaults of one service and of [`BASE_DEFAULTS`] as one table.
pub(super) struct Schema {
    pub(super) table: Table,
    own: Defaults,
}

impl Schema {
    pub(super) fn new(own: Defaults) -> Result<Self, Error> {
        let wrong = |reason: String| Error::Defaults { reason };
        let mut table: Table = toml::from_str(own.toml).map_err(|error| wrong(error.to_string()))?;
        let base: Table = toml::from_str(BASE_DEFAULTS.toml).map_err(|error| wrong(error.to_string()))?;
        for (section, value) in base {
            if table.insert(section.clone(), value).is_some() {
                return Err(wrong(format!("[{section}] belongs to the base configuration")));
            }
        }
        let schema = Self { table, own };
        for (old, new) in own.renamed_keys {
            if schema.has(old) || !schema.has(new) {
                return Err(wrong(format!("renamed key `{old}`: `{new}` must exist, and `{old}` must not")));
            }
        }
        Ok(schema)
    }

    /// Returns the new path of a renamed key.
    pub(super) fn new_path(&self, old_path: &str) -> Option<String> {
        self.own.new_path(old_path).or_else(|| BASE_DEFAULTS.new_path(old_path))
    }

    fn has(&self, path: &str) -> bool {
        let mut keys = path.split('.');
        let first = keys.next().and_then(|key| self.table.get(key));
        keys.fold(first, |value, key| value.and_then(Value::as_table)?.get(key)).is_some()
    }
}
