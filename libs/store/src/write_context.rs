//! The time, trace context and id generator of a write.

use chrono::{DateTime, Utc};
use uuid::Uuid;

/// Values for a write that must not come from the database.
#[derive(Clone, Copy)]
pub struct WriteContext<'a> {
    pub now: DateTime<Utc>,
    /// W3C trace context, continued by the jobs.
    pub traceparent: Option<&'a str>,
    /// Depth of the chain of deliveries that caused the write; 0 for a visitor's or owner's ([`domain::depth`]).
    pub depth: i16,
    /// Generates ids.
    pub new_id: &'a (dyn Fn() -> Uuid + Sync),
}

impl std::fmt::Debug for WriteContext<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WriteContext").field("now", &self.now).finish_non_exhaustive()
    }
}
