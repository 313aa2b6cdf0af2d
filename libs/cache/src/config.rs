//! Section `[redis]` of a service's configuration.

use std::fmt;
use std::path::PathBuf;

use redis_connection::Server;
use secrecy::SecretString;
use serde::Deserialize;

/// The address of Redis and the prefix of our keys in it.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// `redis://host:port`, or `rediss://host:port` for TLS. With `sentinels`, its host and port are not used.
    pub url: String,
    /// Replaces the URL's password unless it is empty.
    pub password: SecretString,
    /// Roots in PEM that the server's certificate must lead to; empty for the public authorities'.
    pub ca_file: PathBuf,
    /// `host:port` of the Sentinels that name the primary; none for the server of the URL.
    pub sentinels: Vec<String>,
    /// The name by which the Sentinels monitor the primary.
    pub master_name: String,
    /// The password of the Sentinels themselves.
    pub sentinel_password: SecretString,
    /// Prefix of every key and channel, so that several installations can share one Redis.
    pub prefix: String,
}

impl Config {
    /// Settings for tools and tests: all that a URL says.
    pub fn new(url: impl Into<String>, prefix: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            password: SecretString::default(),
            ca_file: PathBuf::new(),
            sentinels: Vec::new(),
            master_name: String::new(),
            sentinel_password: SecretString::default(),
            prefix: prefix.into(),
        }
    }
}

/// Omits the URL, which may contain a password.
impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("ca_file", &self.ca_file)
            .field("sentinels", &self.sentinels)
            .field("master_name", &self.master_name)
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}

impl From<&Config> for Server {
    fn from(config: &Config) -> Self {
        Self {
            url: config.url.clone().into(),
            password: config.password.clone(),
            ca_file: config.ca_file.clone(),
            sentinels: config.sentinels.clone(),
            master_name: config.master_name.clone(),
            sentinel_password: config.sentinel_password.clone(),
        }
    }
}
