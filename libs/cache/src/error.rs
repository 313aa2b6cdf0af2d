//! The crate's error.

/// A failed call to Redis.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Redis is unavailable or returned an error.
    #[error("redis: {0}")]
    Redis(#[from] redis::RedisError),
    /// Redis sent no response in time.
    #[error("redis did not respond in time")]
    Timeout,
    /// A message can't be serialized, which is a bug of its type.
    #[error("a message can't be serialized: {0}")]
    Message(#[from] serde_json::Error),
}
