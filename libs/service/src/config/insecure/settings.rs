//! Access to settings by their paths.

use toml::{Table, Value};

/// All settings of a service, by their paths.
#[derive(Clone, Copy)]
pub(super) struct Settings<'a>(pub(super) &'a Table);

impl<'a> Settings<'a> {
    fn get(self, path: &str) -> Option<&'a Value> {
        let mut keys = path.split('.');
        let first = self.0.get(keys.next()?)?;
        keys.try_fold(first, |value, key| value.as_table()?.get(key))
    }

    /// Returns the text at `path`; `None` if the service has no such setting.
    pub(super) fn text(self, path: &str) -> Option<&'a str> {
        self.get(path)?.as_str()
    }

    /// Returns whether the setting at `path` is `true`.
    pub(super) fn is_on(self, path: &str) -> bool {
        self.get(path).and_then(Value::as_bool).unwrap_or_default()
    }

    /// Returns the list of texts at `path`; `None` if the service has no such setting.
    pub(super) fn list(self, path: &str) -> Option<Vec<&'a str>> {
        self.get(path)?.as_array().map(|items| items.iter().filter_map(Value::as_str).collect())
    }
}
