//! Section `[store]` of a service's configuration.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use secrecy::SecretString;
use serde::{Deserialize, Deserializer, de::Error as _};

/// Bounds of [`Config::new`].
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a caller of a tool waits for a connection.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);

/// Section `[store]` of a service's configuration.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// `postgres://user:password@host:port/database`.
    pub url: String,
    /// The same of a standby, for exports; empty for none. Only the control plane has it.
    #[serde(default)]
    pub read_url: String,
    /// Replaces the URL's password unless it is empty.
    pub password: SecretString,
    /// Roots in PEM that the server's certificate must lead to; empty if the URL's `sslmode` decides.
    pub ca_file: PathBuf,
    /// Maximum open connections of this service.
    pub max_connections: u32,
    /// How long a statement waits for a lock.
    #[serde(deserialize_with = "duration")]
    pub lock_timeout: Duration,
    /// How long a statement runs. Postgres ends it; if Postgres does not answer, the connection is given up.
    #[serde(deserialize_with = "duration")]
    pub statement_timeout: Duration,
    /// How long a transaction may be idle before Postgres ends it with its locks.
    #[serde(deserialize_with = "duration")]
    pub idle_in_transaction_timeout: Duration,
    /// How long a caller waits for a connection, which includes opening it.
    #[serde(deserialize_with = "duration")]
    pub acquire_timeout: Duration,
}

impl Config {
    /// Settings for tools and tests: a minute for every statement.
    pub fn new(url: impl Into<String>, max_connections: u32) -> Self {
        Self {
            url: url.into(),
            read_url: String::new(),
            password: SecretString::default(),
            ca_file: PathBuf::new(),
            max_connections,
            lock_timeout: DEFAULT_TIMEOUT,
            statement_timeout: DEFAULT_TIMEOUT,
            idle_in_transaction_timeout: DEFAULT_TIMEOUT,
            acquire_timeout: ACQUIRE_TIMEOUT,
        }
    }
}

/// Omits the URL, which may contain a password.
impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("ca_file", &self.ca_file)
            .field("max_connections", &self.max_connections)
            .field("lock_timeout", &self.lock_timeout)
            .field("statement_timeout", &self.statement_timeout)
            .field("idle_in_transaction_timeout", &self.idle_in_transaction_timeout)
            .field("acquire_timeout", &self.acquire_timeout)
            .finish_non_exhaustive()
    }
}

/// Reads a duration such as `"10s"`. Zero would mean no limit in Postgres, so it is refused.
fn duration<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
    let text = String::deserialize(from)?;
    let duration = humantime::parse_duration(&text)
        .map_err(|error| D::Error::custom(format!("not a duration such as \"10s\": {error}")))?;
    if duration < Duration::from_millis(1) {
        return Err(D::Error::custom("must be at least 1ms"));
    }
    Ok(duration)
}
