//! A job with its id and trace context.

use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::Value;

/// A queued job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task<J> {
    /// The deduplication key, e.g. `delivery:<uuid>:<attempt>`. While a task with this id is unfinished, pushing
    /// the id again changes nothing.
    pub id: String,
    /// The payload.
    pub job: J,
    /// The W3C trace context of the request that caused the job.
    pub traceparent: Option<String>,
}

/// A queued job that this version can't parse: a newer one pushed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadableTask {
    /// The deduplication key.
    pub id: String,
    /// The payload, as its writer serialized it.
    pub job: Value,
    /// The W3C trace context of the request that caused the job.
    pub traceparent: Option<String>,
}

/// Takes over a job that this version can't parse. Returns whether it did; otherwise the job returns to the queue.
pub(crate) type UnreadableHandler = Arc<dyn Fn(UnreadableTask) -> BoxFuture<'static, bool> + Send + Sync>;
