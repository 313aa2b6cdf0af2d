//! The loads under way: one for a key, with everybody else waiting for it, and each told when its key is
//! invalidated meanwhile. Telling and landing take the same lock, so an old value can't slip in between.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

pub(super) struct InFlightLoads<K>(Mutex<HashMap<K, InFlightLoad>>);

struct InFlightLoad {
    outcome: LoadResult,
    /// Says `true` when the load has failed; dropped when it has ended in any way.
    failed: watch::Receiver<bool>,
}

/// What happened to a key while it was being loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LoadResult {
    Current,
    Stale,
    Removed,
}

impl LoadResult {
    pub(super) fn is_stale(self) -> bool {
        self == Self::Stale
    }

    pub(super) fn is_removed(self) -> bool {
        self == Self::Removed
    }
}

pub(super) enum Role<K: Hash + Eq> {
    Leader(Leader<K>),
    Follower(Follower),
}

/// The right to load a key. Dropped before it lands, as when its caller gave up, it leaves the key to the next.
pub(super) struct Leader<K: Hash + Eq> {
    in_flight: Arc<InFlightLoads<K>>,
    key: K,
    failed: watch::Sender<bool>,
    completed: bool,
}

/// A place in the waiting room of a key that is being loaded.
pub(super) struct Follower(watch::Receiver<bool>);

impl<K> Default for InFlightLoads<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Hash + Eq + Clone> InFlightLoads<K> {
    pub(super) fn join(self: &Arc<Self>, key: &K) -> Role<K> {
        let mut in_flight = self.lock();
        if let Some(flight) = in_flight.get(key) {
            return Role::Follower(Follower(flight.failed.clone()));
        }
        let (failed, receiver) = watch::channel(false);
        in_flight.insert(key.clone(), InFlightLoad { outcome: LoadResult::Current, failed: receiver });
        Role::Leader(Leader { in_flight: Arc::clone(self), key: key.clone(), failed, completed: false })
    }

    pub(super) fn mark_stale(&self, key: &K, and: impl FnOnce()) {
        self.mark(Some(key), LoadResult::Stale, and);
    }

    pub(super) fn mark_all_stale(&self, and: impl FnOnce()) {
        self.mark(None, LoadResult::Stale, and);
    }

    pub(super) fn mark_removed(&self, key: &K, and: impl FnOnce()) {
        self.mark(Some(key), LoadResult::Removed, and);
    }

    pub(super) fn mark_all_removed(&self, and: impl FnOnce()) {
        self.mark(None, LoadResult::Removed, and);
    }

    /// Nothing lands, is is_stale or forbidden while this runs.
    pub(super) fn with_lock<T>(&self, work: impl FnOnce() -> T) -> T {
        let _flights = self.lock();
        work()
    }

    fn mark(&self, key: Option<&K>, outcome: LoadResult, and: impl FnOnce()) {
        let mut in_flight = self.lock();
        match key {
            Some(key) => in_flight.get_mut(key).into_iter().for_each(|flight| flight.worsen(outcome)),
            None => in_flight.values_mut().for_each(|flight| flight.worsen(outcome)),
        }
        and();
    }
}

impl<K> InFlightLoads<K> {
    fn lock(&self) -> MutexGuard<'_, HashMap<K, InFlightLoad>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl InFlightLoad {
    fn worsen(&mut self, outcome: LoadResult) {
        self.outcome = self.outcome.max(outcome);
    }
}

impl<K: Hash + Eq> Leader<K> {
    /// Ends the load; `put` stores the value, knowing what happened meanwhile, before anything else can happen.
    pub(super) fn complete(mut self, put: impl FnOnce(LoadResult)) {
        // From here on the key may be in the air again, under somebody else's lead.
        self.completed = true;
        let mut in_flight = self.in_flight.lock();
        let outcome = in_flight.remove(&self.key).map_or(LoadResult::Current, |flight| flight.outcome);
        put(outcome);
    }

    /// Ends the load and sends the waiting ones their own way.
    pub(super) fn fail(self) {
        let _nobody_waits = self.failed.send(true);
    }
}

impl<K: Hash + Eq> Drop for Leader<K> {
    fn drop(&mut self) {
        if !self.completed {
            self.in_flight.lock().remove(&self.key);
        }
    }
}

impl Follower {
    /// Waits for the load to end; whether it failed (rather than completed or was given up).
    pub(super) async fn failed(mut self) -> bool {
        self.0.wait_for(|failed| *failed).await.is_ok()
    }
}
