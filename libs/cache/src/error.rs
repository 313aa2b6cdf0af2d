//! The crate's error.

/// A failed call to Redis.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Redis is unavailable, returned an error or did not respond in time.
    #[error(transparent)]
    Redis(#[from] redis_connection::Error),
    /// A message can't be serialized, which is a bug of its type.
    #[error("a message can't be serialized: {0}")]
    Message(#[from] serde_json::Error),
}
