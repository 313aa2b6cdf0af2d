//! The error of a call to Redis.

use redis::RedisError;

/// A failed call to Redis.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Redis is unavailable or returned an error.
    #[error("redis: {0}")]
    Redis(#[from] RedisError),
    /// Redis did not respond in time. It may have run the call.
    #[error("redis did not respond in time")]
    Timeout,
    /// A setting is invalid.
    #[error("{0}")]
    Setting(String),
}
