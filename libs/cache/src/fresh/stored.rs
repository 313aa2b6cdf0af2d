//! One value in the cache and what is known about its age.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

pub(super) struct Stored<V> {
    pub(super) value: V,
    /// When loading began: what changed since may not be in it.
    loaded: Instant,
    epoch: u64,
    outdated: AtomicBool,
    /// When a reload last failed, and in which epoch.
    failed: Mutex<Option<(Instant, u64)>>,
}

impl<V> Stored<V> {
    pub(super) fn new(value: V, loaded: Instant, epoch: u64) -> Self {
        Self { value, loaded, epoch, outdated: AtomicBool::new(false), failed: Mutex::new(None) }
    }

    /// Another value in this one's place.
    pub(super) fn with(&self, value: V) -> Self {
        let failed = *self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        Self {
            value,
            loaded: self.loaded,
            epoch: self.epoch,
            outdated: AtomicBool::new(self.outdated.load(Ordering::SeqCst)),
            failed: Mutex::new(failed),
        }
    }

    pub(super) fn is_fresh(&self, now: Instant, epoch: u64, fresh_for: Duration) -> bool {
        self.epoch == epoch
            && !self.outdated.load(Ordering::SeqCst)
            && now.saturating_duration_since(self.loaded) < fresh_for
    }

    pub(super) fn fresh_until(&self, fresh_for: Duration) -> Instant {
        self.loaded + fresh_for
    }

    /// Must be reloaded before it is used; an earlier failure to do so is no excuse any more.
    pub(super) fn outdate(&self) {
        self.outdated.store(true, Ordering::SeqCst);
        *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    pub(super) fn note_failure(&self, now: Instant, epoch: u64) {
        *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some((now, epoch));
    }

    pub(super) fn failed_lately(&self, now: Instant, epoch: u64, retry_after: Duration) -> bool {
        let failed = *self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        failed.is_some_and(|(at, of)| of == epoch && now.saturating_duration_since(at) < retry_after)
    }
}
