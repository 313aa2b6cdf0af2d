//! The time at which a connection of a pool last got no answer.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// When a connection of the pool last got no answer. What killed it has probably killed the others, so those that were
/// idle by then are replaced instead of being tried one after the other. Clones share the time.
#[derive(Debug, Clone, Default)]
pub(super) struct LastTimeout(Arc<Mutex<Option<Instant>>>);

impl LastTimeout {
    pub(super) fn record(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// Returns whether it was within this time until now.
    pub(super) fn is_within(&self, time: Duration) -> bool {
        let last = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        last.is_some_and(|last| last.elapsed() <= time)
    }
}

/// The error of a statement without an answer.
pub(super) fn no_answer() -> sqlx::Error {
    std::io::Error::new(std::io::ErrorKind::TimedOut, "postgres did not answer in time").into()
}
