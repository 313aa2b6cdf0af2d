//! Section `[store]` of a service's configuration.

use std::time::Duration;

use serde::{Deserialize, Deserializer, de::Error as _};

/// Bounds of [`Config::new`].
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a caller of a tool waits for a connection.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);

/// Section `[store]` of a service's configuration.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// `postgres://user:password@host:port/database`.
    pub url: String,
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
            max_connections,
            lock_timeout: DEFAULT_TIMEOUT,
            statement_timeout: DEFAULT_TIMEOUT,
            idle_in_transaction_timeout: DEFAULT_TIMEOUT,
            acquire_timeout: ACQUIRE_TIMEOUT,
        }
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
