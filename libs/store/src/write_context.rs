//! The time, trace context and id generator that a write needs.

use chrono::{DateTime, Utc};
use uuid::Uuid;

/// Who writes, and when: what no database may make up.
#[derive(Clone, Copy)]
pub struct WriteContext<'a> {
    /// Now.
    pub now: DateTime<Utc>,
    /// W3C trace context, which runs on through the jobs.
    pub traceparent: Option<&'a str>,
    /// Makes ids.
    pub new_id: &'a (dyn Fn() -> Uuid + Sync),
}

impl std::fmt::Debug for WriteContext<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WriteContext").field("now", &self.now).finish_non_exhaustive()
    }
}
