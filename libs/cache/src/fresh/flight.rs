//! The loads under way: one for a key, with everybody else waiting for it, and each told when its key is
//! invalidated meanwhile. Telling and landing take the same lock, so an old value can't slip in between.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

pub(super) struct Flights<K>(Mutex<HashMap<K, Flight>>);

struct Flight {
    outcome: Outcome,
    /// Says `true` when the load has failed; dropped when it has ended in any way.
    failed: watch::Receiver<bool>,
}

/// What happened to a key while it was being loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Outcome {
    Undisturbed,
    Outdated,
    Forbidden,
}

impl Outcome {
    pub(super) fn is_outdated(self) -> bool {
        self == Self::Outdated
    }

    pub(super) fn is_forbidden(self) -> bool {
        self == Self::Forbidden
    }
}

pub(super) enum Role<K: Hash + Eq> {
    Lead(Lead<K>),
    Follow(Follow),
}

/// The right to load a key. Dropped before it lands, as when its caller gave up, it leaves the key to the next.
pub(super) struct Lead<K: Hash + Eq> {
    flights: Arc<Flights<K>>,
    key: K,
    failed: watch::Sender<bool>,
    landed: bool,
}

/// A place in the waiting room of a key that is being loaded.
pub(super) struct Follow(watch::Receiver<bool>);

impl<K> Default for Flights<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Hash + Eq + Clone> Flights<K> {
    pub(super) fn join(self: &Arc<Self>, key: &K) -> Role<K> {
        let mut flights = self.lock();
        if let Some(flight) = flights.get(key) {
            return Role::Follow(Follow(flight.failed.clone()));
        }
        let (failed, receiver) = watch::channel(false);
        flights.insert(key.clone(), Flight { outcome: Outcome::Undisturbed, failed: receiver });
        Role::Lead(Lead { flights: Arc::clone(self), key: key.clone(), failed, landed: false })
    }

    pub(super) fn outdate(&self, key: &K, and: impl FnOnce()) {
        self.tell(Some(key), Outcome::Outdated, and);
    }

    pub(super) fn outdate_all(&self, and: impl FnOnce()) {
        self.tell(None, Outcome::Outdated, and);
    }

    pub(super) fn forbid(&self, key: &K, and: impl FnOnce()) {
        self.tell(Some(key), Outcome::Forbidden, and);
    }

    pub(super) fn forbid_all(&self, and: impl FnOnce()) {
        self.tell(None, Outcome::Forbidden, and);
    }

    /// Nothing lands, is outdated or forbidden while this runs.
    pub(super) fn undisturbed<T>(&self, work: impl FnOnce() -> T) -> T {
        let _flights = self.lock();
        work()
    }

    fn tell(&self, key: Option<&K>, outcome: Outcome, and: impl FnOnce()) {
        let mut flights = self.lock();
        match key {
            Some(key) => flights.get_mut(key).into_iter().for_each(|flight| flight.worsen(outcome)),
            None => flights.values_mut().for_each(|flight| flight.worsen(outcome)),
        }
        and();
    }
}

impl<K> Flights<K> {
    fn lock(&self) -> MutexGuard<'_, HashMap<K, Flight>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Flight {
    fn worsen(&mut self, outcome: Outcome) {
        self.outcome = self.outcome.max(outcome);
    }
}

impl<K: Hash + Eq> Lead<K> {
    /// Ends the load; `put` stores the value, knowing what happened meanwhile, before anything else can happen.
    pub(super) fn land(mut self, put: impl FnOnce(Outcome)) {
        // From here on the key may be in the air again, under somebody else's lead.
        self.landed = true;
        let mut flights = self.flights.lock();
        let outcome = flights.remove(&self.key).map_or(Outcome::Undisturbed, |flight| flight.outcome);
        put(outcome);
    }

    /// Ends the load and sends the waiting ones their own way.
    pub(super) fn fail(self) {
        let _nobody_waits = self.failed.send(true);
    }
}

impl<K: Hash + Eq> Drop for Lead<K> {
    fn drop(&mut self) {
        if !self.landed {
            self.flights.lock().remove(&self.key);
        }
    }
}

impl Follow {
    /// Waits for the load to end; whether it failed (rather than landed or was given up).
    pub(super) async fn failed(mut self) -> bool {
        self.0.wait_for(|failed| *failed).await.is_ok()
    }
}
