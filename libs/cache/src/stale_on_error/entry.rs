//! A cached value and its age.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

pub(super) struct Entry<V> {
    pub(super) value: V,
    /// The start of the load: the value may lack any later change.
    loaded_at: Instant,
    epoch: u64,
    is_stale: AtomicBool,
    /// The time and epoch of the last failed reload.
    failure: Mutex<Option<(Instant, u64)>>,
}

impl<V> Entry<V> {
    pub(super) fn new(value: V, loaded_at: Instant, epoch: u64) -> Self {
        Self { value, loaded_at, epoch, is_stale: AtomicBool::new(false), failure: Mutex::new(None) }
    }

    /// Returns an entry with another value and the same age and state.
    pub(super) fn with(&self, value: V) -> Self {
        let failure = *self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        Self {
            value,
            loaded_at: self.loaded_at,
            epoch: self.epoch,
            is_stale: AtomicBool::new(self.is_stale.load(Ordering::SeqCst)),
            failure: Mutex::new(failure),
        }
    }

    pub(super) fn is_fresh(&self, now: Instant, epoch: u64, max_age: Duration) -> bool {
        self.epoch == epoch
            && !self.is_stale.load(Ordering::SeqCst)
            && now.saturating_duration_since(self.loaded_at) < max_age
    }

    pub(super) fn expires_at(&self, max_age: Duration) -> Instant {
        self.loaded_at + max_age
    }

    /// Marks the value stale. A reload that failed earlier is retried at once.
    pub(super) fn mark_stale(&self) {
        self.is_stale.store(true, Ordering::SeqCst);
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    pub(super) fn record_failure(&self, now: Instant, epoch: u64) {
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some((now, epoch));
    }

    pub(super) fn failed_recently(&self, now: Instant, epoch: u64, retry_interval: Duration) -> bool {
        let failure = *self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        failure.is_some_and(|(at, of)| of == epoch && now.saturating_duration_since(at) < retry_interval)
    }
}
