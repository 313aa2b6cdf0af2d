//! Section `[redis]` of a service's configuration.

use serde::Deserialize;

/// Where Redis is, and what stands before everything of ours in it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// `redis://host:port`.
    pub url: String,
    /// Stands before every key and channel, so that installations can share a Redis.
    pub prefix: String,
}
