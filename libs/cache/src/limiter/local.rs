//! Counters of this process, used while Redis is unavailable.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::window::Window;

/// Enough for the visitors of one process. Beyond it, the least used counters are evicted.
const MAX_COUNTERS: u64 = 100_000;

#[derive(Clone)]
pub(super) struct Local {
    counters: moka::sync::Cache<String, Arc<AtomicU32>>,
    /// Makes the check and the increment of several windows atomic.
    counting: Arc<Mutex<()>>,
}

impl Local {
    pub(super) fn new() -> Self {
        // No shorter than the longest window in use.
        let ttl = std::time::Duration::from_hours(24);
        let counters = moka::sync::Cache::builder().max_capacity(MAX_COUNTERS).time_to_idle(ttl).build();
        Self { counters, counting: Arc::default() }
    }

    /// Stores the counts from Redis, so that counting continues from them if Redis becomes unavailable.
    pub(super) fn update(&self, windows: &[Window], counts: &[u32]) {
        let full = windows.iter().zip(counts).any(|(window, count)| *count >= window.rule.limit);
        for (window, count) in windows.iter().zip(counts) {
            self.counter(window).fetch_max(count + u32::from(!full), Ordering::SeqCst);
        }
    }

    /// Counts one hit unless a window is full. Returns the counts before it.
    pub(super) fn hit(&self, windows: &[Window]) -> Vec<u32> {
        let _guard = self.counting.lock().unwrap_or_else(PoisonError::into_inner);
        let counters: Vec<_> = windows.iter().map(|window| self.counter(window)).collect();
        let counts: Vec<u32> = counters.iter().map(|counter| counter.load(Ordering::SeqCst)).collect();
        if windows.iter().zip(&counts).all(|(window, count)| *count < window.rule.limit) {
            for counter in counters {
                counter.fetch_add(1, Ordering::SeqCst);
            }
        }
        counts
    }

    fn counter(&self, window: &Window) -> Arc<AtomicU32> {
        self.counters.get_with_by_ref(&window.name, Arc::default)
    }
}
