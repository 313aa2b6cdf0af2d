//! Job leases. A lease assigns a job to one worker for a limited time and is renewed while the job runs. When the
//! worker dies, the lease expires and another worker runs the job.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, mpsc};

use crate::task::Task;

/// A job's id and the owner of its lease. The owner name is new for every claim: after a
/// lease expired and the job was claimed again, even by the same worker, the old owner can't acknowledge the job.
#[derive(Clone, Debug)]
pub(crate) struct LeaseKey {
    pub(crate) id: Arc<str>,
    pub(crate) owner: Arc<str>,
}

/// The leases that one worker renews: owners by job id.
#[derive(Clone, Default)]
pub(crate) struct Leases(Arc<Mutex<HashMap<Arc<str>, Arc<str>>>>);

impl Leases {
    pub(crate) fn remove(&self, keys: &[LeaseKey]) {
        let mut leases = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for key in keys {
            if leases.get(&key.id) == Some(&key.owner) {
                leases.remove(&key.id);
            }
        }
    }

    fn insert(&self, key: &LeaseKey) {
        let mut leases = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        leases.insert(Arc::clone(&key.id), Arc::clone(&key.owner));
    }

    pub(crate) fn all(&self) -> Vec<LeaseKey> {
        let leases = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        leases.iter().map(|(id, owner)| LeaseKey { id: Arc::clone(id), owner: Arc::clone(owner) }).collect()
    }
}

/// A task with its lease, as apalis passes it to the handler.
pub(crate) struct LeasedTask<J> {
    pub(crate) task: Task<J>,
    pub(crate) lease: Lease,
}

/// The lease of one job together with its concurrency permit. If it is dropped before [`Lease::complete`], renewal stops
/// and the job runs again after the lease expires.
pub(crate) struct Lease {
    key: LeaseKey,
    leases: Leases,
    done: mpsc::UnboundedSender<LeaseKey>,
    completed: bool,
    _permit: OwnedSemaphorePermit,
}

impl Lease {
    pub(crate) fn new(
        key: LeaseKey,
        leases: Leases,
        done: mpsc::UnboundedSender<LeaseKey>,
        permit: OwnedSemaphorePermit,
    ) -> Self {
        leases.insert(&key);
        Self { key, leases, done, completed: false, _permit: permit }
    }

    /// Marks the job as done. The lease is renewed until Redis has acknowledged the job.
    pub(crate) fn complete(mut self) {
        self.completed = self.done.send(self.key.clone()).is_ok();
    }

    /// Returns the key and keeps the lease alive, so that the caller can return the job to the queue.
    pub(crate) fn into_key(mut self) -> LeaseKey {
        self.completed = true;
        self.key.clone()
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if !self.completed {
            self.leases.remove(std::slice::from_ref(&self.key));
        }
    }
}
