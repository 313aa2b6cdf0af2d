//! Section `[redis]` of a service's configuration.

use serde::Deserialize;

/// The address of Redis and the prefix of our keys in it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// `redis://host:port`.
    pub url: String,
    /// Prefix of every key and channel, so that several installations can share one Redis.
    pub prefix: String,
}
