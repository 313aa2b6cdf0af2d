//! The error of a queue operation.

/// A failed queue operation.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Redis is unavailable, returned an error or did not respond in time. The operation may have run; repeating it is safe.
    #[error(transparent)]
    Redis(#[from] redis_connection::Error),
    /// The job can't be serialized as JSON, which is a bug in its type.
    #[error("a job can't be serialized: {0}")]
    Job(#[from] serde_json::Error),
}
