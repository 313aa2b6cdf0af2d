//! What the shippers of the shards are doing: which of them is ready for a segment, which finds its shard away, and what is
//! not stored yet.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use chrono::{DateTime, Utc};
use tokio::sync::Notify;
use uuid::Uuid;

/// What the shippers of the shards are doing.
#[derive(Debug, Default)]
pub(super) struct ShardLoad {
    shards: Vec<ShardState>,
    /// When the segments arrived that are not stored, by id.
    unsent: Mutex<BTreeMap<Uuid, DateTime<Utc>>>,
    /// A shipper is ready for another segment.
    is_ready: Notify,
}

#[derive(Debug, Default)]
struct ShardState {
    segments: AtomicUsize,
    is_away: AtomicBool,
}

impl ShardLoad {
    pub(super) fn new(shards: usize) -> Self {
        Self { shards: (0..shards).map(|_| ShardState::default()).collect(), ..Self::default() }
    }

    /// Returns whether the last attempt of a shard's shipper failed.
    pub(super) fn is_away(&self, shard: usize) -> bool {
        self.shards.get(shard).is_some_and(|state| state.is_away.load(Ordering::Relaxed))
    }

    pub(super) fn set_away(&self, shard: usize, is_away: bool) {
        if let Some(state) = self.shards.get(shard) {
            state.is_away.store(is_away, Ordering::Relaxed);
        }
    }

    /// Records that a shipper has finished or set aside a segment.
    pub(super) fn set_ready(&self, shard: usize) {
        if let Some(state) = self.shards.get(shard) {
            state.segments.fetch_sub(1, Ordering::Relaxed);
        }
        self.is_ready.notify_one();
    }

    /// Records that all shards have their events of a segment.
    pub(super) fn remove(&self, segment: Uuid) {
        self.unsent.lock().unwrap_or_else(PoisonError::into_inner).remove(&segment);
    }

    /// Records a segment that all shippers get.
    pub(super) fn add(&self, segment: Uuid, since: DateTime<Utc>) {
        for state in &self.shards {
            state.segments.fetch_add(1, Ordering::Relaxed);
        }
        self.unsent.lock().unwrap_or_else(PoisonError::into_inner).insert(segment, since);
    }

    /// Waits until a shipper has no segment. While none has, the journal lets its segment grow.
    pub(super) async fn ready(&self) {
        while self.shards.iter().all(|state| state.segments.load(Ordering::Relaxed) > 0) {
            self.is_ready.notified().await;
        }
    }

    pub(super) fn any_away(&self) -> bool {
        self.shards.iter().any(|state| state.is_away.load(Ordering::Relaxed))
    }

    /// Returns when the oldest segment arrived that is not stored.
    pub(super) fn oldest(&self) -> Option<DateTime<Utc>> {
        self.unsent.lock().unwrap_or_else(PoisonError::into_inner).values().min().copied()
    }
}
