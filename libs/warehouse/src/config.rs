//! The configuration of the connection.

use std::fmt;
use std::path::PathBuf;

use serde::Deserialize;

/// Section `[warehouse]` of a service's configuration.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// ClickHouse's HTTP address, `http://host:8123` or `https://host:8443`; several servers of a cluster with commas
    /// between.
    pub url: String,
    /// The database; created by the migrations if missing.
    pub database: String,
    /// The user name.
    pub user: String,
    /// The user's password; empty for none.
    pub password: String,
    /// Roots in PEM that the server's certificate must lead to; empty for the public authorities'.
    pub ca_file: PathBuf,
    /// The cluster's name in the servers' configuration; empty for a single server.
    pub cluster: String,
}

/// Omits the password.
impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("url", &self.url)
            .field("database", &self.database)
            .field("user", &self.user)
            .field("ca_file", &self.ca_file)
            .field("cluster", &self.cluster)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_output_omits_the_password() {
        let config = Config {
            url: "http://localhost:8123".into(),
            database: "app".into(),
            user: "app".into(),
            password: "s3cret".into(),
            ca_file: PathBuf::new(),
            cluster: String::new(),
        };
        assert!(!format!("{config:?}").contains("s3cret"));
    }
}
