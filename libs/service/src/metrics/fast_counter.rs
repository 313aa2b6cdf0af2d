//! Counters for hot paths.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Threads count in different shards, each a cache line of its own, so that they don't contend.
const SHARDS: usize = 8;

static NEXT_SHARD: AtomicUsize = AtomicUsize::new(0);

/// A counter without a lookup: [`FastCounter::add`] is one atomic addition. See
/// [`fast_counters`](super::fast_counters).
#[derive(Clone, Debug, Default)]
pub struct FastCounter(Arc<[Shard; SHARDS]>);

#[derive(Debug, Default)]
#[repr(align(128))]
struct Shard(AtomicU64);

impl FastCounter {
    /// Adds `amount`.
    pub fn add(&self, amount: u64) {
        thread_local! {
            static SHARD: usize = NEXT_SHARD.fetch_add(1, Ordering::Relaxed) % SHARDS;
        }
        let shard = SHARD.with(|shard| *shard);
        self.0[shard].0.fetch_add(amount, Ordering::Relaxed);
    }

    pub(super) fn read(&self) -> u64 {
        self.0.iter().map(|shard| shard.0.load(Ordering::Relaxed)).sum()
    }
}
