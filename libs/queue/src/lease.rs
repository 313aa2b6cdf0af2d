//! A lease says that a job is this worker's for now. While the job runs the lease is renewed; when the worker dies
//! nobody renews it, and that is all it takes for the job to be run again elsewhere.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::MissedTickBehavior;

use crate::ledger::Ledger;

/// A job's id and the name its lease is held under. The name is new for every take: a job that lapsed and was
/// taken again, even by the same worker, can't be finished under its old lease.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) id: Arc<str>,
    pub(crate) holder: Arc<str>,
}

/// The leases one worker renews.
#[derive(Clone, Default)]
pub(crate) struct Leases(Arc<Mutex<HashMap<Arc<str>, Arc<str>>>>);

impl Leases {
    pub(crate) fn remove(&self, done: &[Held]) {
        let mut leases = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for held in done {
            if leases.get(&held.id) == Some(&held.holder) {
                leases.remove(&held.id);
            }
        }
    }

    fn insert(&self, held: &Held) {
        let mut leases = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        leases.insert(Arc::clone(&held.id), Arc::clone(&held.holder));
    }

    fn all(&self) -> Vec<Held> {
        let leases = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        leases.iter().map(|(id, holder)| Held { id: Arc::clone(id), holder: Arc::clone(holder) }).collect()
    }
}

/// One job's lease and its place among those running at once. Dropped before [`Lease::finish`], it is renewed no
/// longer, and the job is run again once it has lapsed.
pub(crate) struct Lease {
    held: Held,
    leases: Leases,
    done: mpsc::UnboundedSender<Held>,
    finished: bool,
    _place: OwnedSemaphorePermit,
}

impl Lease {
    pub(crate) fn new(
        held: Held,
        leases: Leases,
        done: mpsc::UnboundedSender<Held>,
        place: OwnedSemaphorePermit,
    ) -> Self {
        leases.insert(&held);
        Self { held, leases, done, finished: false, _place: place }
    }

    /// Says that the job is done. It stays leased until Redis has been told.
    pub(crate) fn finish(mut self) {
        self.finished = self.done.send(self.held.clone()).is_ok();
    }

    /// Keeps the lease for the caller to give back.
    pub(crate) fn into_held(mut self) -> Held {
        self.finished = true;
        self.held.clone()
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if !self.finished {
            self.leases.remove(std::slice::from_ref(&self.held));
        }
    }
}

/// Renews all leases three times a lease, for as long as it runs.
pub(crate) async fn renew(ledger: Arc<Ledger>, leases: Leases, lease: Duration) {
    let mut tick = tokio::time::interval(lease / 3);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        let held = leases.all();
        if held.is_empty() {
            continue;
        }
        match ledger.renew(&held, lease).await {
            Ok(0) => {}
            Ok(lost) => tracing::warn!(lost, "jobs under way have lost their lease and may be run twice"),
            Err(error) => tracing::warn!(%error, "leases couldn't be renewed"),
        }
    }
}
