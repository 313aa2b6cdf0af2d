//! One value in the cache and what is known about its age.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

pub(super) struct Entry<V> {
    pub(super) value: V,
    /// When loading began: what changed since may not be in it.
    loaded: Instant,
    epoch: u64,
    is_stale: AtomicBool,
    /// When a reload last failed, and in which epoch.
    failed: Mutex<Option<(Instant, u64)>>,
}

impl<V> Entry<V> {
    pub(super) fn new(value: V, loaded: Instant, epoch: u64) -> Self {
        Self { value, loaded, epoch, is_stale: AtomicBool::new(false), failed: Mutex::new(None) }
    }

    /// Another value in this one's place.
    pub(super) fn with(&self, value: V) -> Self {
        let failed = *self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        Self {
            value,
            loaded: self.loaded,
            epoch: self.epoch,
            is_stale: AtomicBool::new(self.is_stale.load(Ordering::SeqCst)),
            failed: Mutex::new(failed),
        }
    }

    pub(super) fn is_fresh(&self, now: Instant, epoch: u64, max_age: Duration) -> bool {
        self.epoch == epoch
            && !self.is_stale.load(Ordering::SeqCst)
            && now.saturating_duration_since(self.loaded) < max_age
    }

    pub(super) fn expires_at(&self, max_age: Duration) -> Instant {
        self.loaded + max_age
    }

    /// Must be reloaded before it is used; an earlier failure to do so is no excuse any more.
    pub(super) fn mark_stale(&self) {
        self.is_stale.store(true, Ordering::SeqCst);
        *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    pub(super) fn record_failure(&self, now: Instant, epoch: u64) {
        *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some((now, epoch));
    }

    pub(super) fn failed_recently(&self, now: Instant, epoch: u64, retry_interval: Duration) -> bool {
        let failed = *self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed.is_some_and(|(at, of)| of == epoch && now.saturating_duration_since(at) < retry_interval)
    }
}
