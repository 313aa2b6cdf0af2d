//! A job with its id and trace context.

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
