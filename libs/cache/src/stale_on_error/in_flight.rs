//! The loads in flight: one per key, for which concurrent callers wait. An invalidation marks the loads it concerns under
//! the same lock that completes them, so a load never stores an old value as fresh.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

pub(super) struct InFlightLoads<K>(Mutex<HashMap<K, Load>>);

struct Load {
    result: LoadResult,
    /// Becomes `true` when the load fails. The sender is dropped when the load ends in any way.
    failed: watch::Receiver<bool>,
}

/// The validity of a loaded value, by the invalidations during its load. Later variants outrank earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LoadResult {
    /// The key was not invalidated.
    Fresh,
    /// The key was invalidated: the value may be served only if a reload fails.
    Stale,
    /// The key was removed: the value must not be stored.
    Removed,
}

/// The role of a caller that needs a key to be loaded.
pub(super) enum Role<K: Hash + Eq> {
    Leader(Leader<K>),
    Follower(Follower),
}

/// The right to load a key. Dropping it before the load ends, as a cancelled caller does, passes the key to the next
/// caller.
pub(super) struct Leader<K: Hash + Eq> {
    loads: Arc<InFlightLoads<K>>,
    key: K,
    failed: watch::Sender<bool>,
    completed: bool,
}

/// A caller that waits for the load of another one.
pub(super) struct Follower(watch::Receiver<bool>);

impl<K> Default for InFlightLoads<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Hash + Eq + Clone> InFlightLoads<K> {
    pub(super) fn join(self: &Arc<Self>, key: &K) -> Role<K> {
        let mut loads = self.lock();
        if let Some(load) = loads.get(key) {
            return Role::Follower(Follower(load.failed.clone()));
        }
        let (failed, receiver) = watch::channel(false);
        loads.insert(key.clone(), Load { result: LoadResult::Fresh, failed: receiver });
        Role::Leader(Leader { loads: Arc::clone(self), key: key.clone(), failed, completed: false })
    }

    /// Marks the load of a key stale, then runs `and` under the lock.
    pub(super) fn mark_stale(&self, key: &K, and: impl FnOnce()) {
        self.mark(Some(key), LoadResult::Stale, and);
    }

    pub(super) fn mark_all_stale(&self, and: impl FnOnce()) {
        self.mark(None, LoadResult::Stale, and);
    }

    /// Marks the load of a key removed, then runs `and` under the lock.
    pub(super) fn mark_removed(&self, key: &K, and: impl FnOnce()) {
        self.mark(Some(key), LoadResult::Removed, and);
    }

    pub(super) fn mark_all_removed(&self, and: impl FnOnce()) {
        self.mark(None, LoadResult::Removed, and);
    }

    /// Runs `work` under the lock: no load completes and no key is invalidated meanwhile.
    pub(super) fn with_lock<T>(&self, work: impl FnOnce() -> T) -> T {
        let _guard = self.lock();
        work()
    }

    fn mark(&self, key: Option<&K>, result: LoadResult, and: impl FnOnce()) {
        let mut loads = self.lock();
        match key {
            Some(key) => loads.get_mut(key).into_iter().for_each(|load| load.mark(result)),
            None => loads.values_mut().for_each(|load| load.mark(result)),
        }
        and();
    }
}

impl<K> InFlightLoads<K> {
    fn lock(&self) -> MutexGuard<'_, HashMap<K, Load>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Load {
    fn mark(&mut self, result: LoadResult) {
        self.result = self.result.max(result);
    }
}

impl<K: Hash + Eq> Leader<K> {
    /// Ends the load. `store` stores the value under the lock; it receives the invalidations during the load.
    pub(super) fn complete(mut self, store: impl FnOnce(LoadResult)) {
        // From here on the key may be in flight again, with another leader.
        self.completed = true;
        let mut loads = self.loads.lock();
        let result = loads.remove(&self.key).map_or(LoadResult::Fresh, |load| load.result);
        store(result);
    }

    /// Ends the load as failed and wakes the followers.
    pub(super) fn fail(self) {
        let _no_followers = self.failed.send(true);
    }
}

impl<K: Hash + Eq> Drop for Leader<K> {
    fn drop(&mut self) {
        if !self.completed {
            self.loads.lock().remove(&self.key);
        }
    }
}

impl Follower {
    /// Waits for the load to end. Returns whether it failed, rather than completed or was cancelled.
    pub(super) async fn failed(mut self) -> bool {
        self.0.wait_for(|failed| *failed).await.is_ok()
    }
}
