//! Where ClickHouse is.

use std::fmt;

use serde::Deserialize;

/// Section `[warehouse]` of a service's configuration.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// ClickHouse's HTTP address, `http://host:8123`.
    pub url: String,
    /// The database; created by the migrations if missing.
    pub database: String,
    /// The user's name.
    pub user: String,
    /// The user's password; empty for none.
    pub password: String,
    /// The cluster's name, as the servers know it; empty for one server.
    pub cluster: String,
}

/// Everything but the password.
impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("url", &self.url)
            .field("database", &self.database)
            .field("user", &self.user)
            .field("cluster", &self.cluster)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_is_not_shown() {
        let config = Config {
            url: "http://localhost:8123".into(),
            database: "app".into(),
            user: "app".into(),
            password: "s3cret".into(),
            cluster: String::new(),
        };
        assert!(!format!("{config:?}").contains("s3cret"));
    }
}
