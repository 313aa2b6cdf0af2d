//! Brings jobs from Redis to the worker: never more than it can start at once, at once when there are some, and
//! with no more than a glance a second when there are none.

use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;
use tokio::sync::{Notify, Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::door::{Brought, Leased};
use crate::lease::{Held, Lease, Leases};
use crate::ledger::{self, Ledger, Taken};
use crate::{Config, Error};

/// How often an idle worker looks without having been woken: for lapsed leases, and for wake-ups that got lost.
const GLANCE: Duration = Duration::from_secs(1);

/// The pause after an error, so that a dead Redis isn't hammered.
const AFTER_ERROR: Duration = Duration::from_millis(100);

pub(crate) struct Feed<J> {
    pub(crate) ledger: Arc<Ledger>,
    pub(crate) config: Config,
    pub(crate) leases: Leases,
    pub(crate) done: mpsc::UnboundedSender<Held>,
    pub(crate) started: mpsc::UnboundedSender<Brought<Leased<J>>>,
    pub(crate) stop: CancellationToken,
}

impl<J: DeserializeOwned> Feed<J> {
    pub(crate) async fn run(self) {
        let places = Arc::new(Semaphore::new(self.config.concurrency));
        let woken = Arc::new(Notify::new());
        let _waiting =
            AbortOnDropHandle::new(tokio::spawn(wake(Arc::clone(&self.ledger), Arc::clone(&woken))));
        let glance = GLANCE.min(self.config.lease / 4);
        let worker = worker_name();
        let mut takes = 0_u64;
        while !self.stop.is_cancelled() {
            let Some(free) = self.stop.run_until_cancelled(free_places(&places)).await else { return };
            takes += 1;
            // Not cut off by `stop`: jobs that Redis has handed out would have to lapse first.
            let taken = self.take(free, &format!("{worker}:{takes}"), &places).await;
            let pause = match taken {
                // As many as there was room for: there may be more.
                Ok(count) if count == free => continue,
                Ok(_) => glance,
                Err(error) => {
                    tracing::warn!(%error, "jobs couldn't be fetched");
                    AFTER_ERROR
                }
            };
            tokio::select! {
                () = woken.notified() => {}
                () = self.stop.cancelled() => {}
                () = pause_for(pause) => {}
            }
        }
    }

    /// Leases up to `most` jobs and starts them; answers how many there were.
    async fn take(&self, most: usize, holder: &str, places: &Arc<Semaphore>) -> Result<usize, Error> {
        let Taken { jobs, dropped } = self.ledger.take(most, holder, &self.config).await?;
        if !dropped.is_empty() {
            let runs = self.config.max_runs;
            tracing::error!(?dropped, runs, "jobs whose worker died or panicked each time are dropped");
        }
        let holder: Arc<str> = holder.into();
        let count = jobs.len();
        for (id, written) in jobs {
            let held = Held { id: id.as_str().into(), holder: Arc::clone(&holder) };
            // Only this loop takes places, and it asked for no more than were free.
            let Ok(place) = Arc::clone(places).try_acquire_owned() else { continue };
            let lease = Lease::new(held, self.leases.clone(), self.done.clone(), place);
            match ledger::read(id, &written) {
                Ok(task) => {
                    let _worker_gone = self.started.send((task.id.clone(), Leased::new(task, lease)));
                }
                Err(error) => {
                    tracing::error!(%error, "a job this version can't read is dropped");
                    lease.finish();
                }
            }
        }
        Ok(count)
    }
}

/// Waits until at least one job more may run, and answers how many.
async fn free_places(places: &Arc<Semaphore>) -> usize {
    let _first = places.acquire().await;
    places.available_permits() + 1
}

/// Turns pushes anywhere into wake-ups here.
async fn wake(ledger: Arc<Ledger>, woken: Arc<Notify>) {
    loop {
        if ledger.wait().await.is_err() {
            pause_for(AFTER_ERROR).await;
        }
        woken.notify_one();
    }
}

/// A name no other run of any worker has: the leases of one that died must not pass for this one's.
fn worker_name() -> String {
    use std::hash::{BuildHasher as _, RandomState};
    format!("{}-{:016x}", std::process::id(), RandomState::new().hash_one(()))
}

#[expect(clippy::disallowed_methods, reason = "between two glances at Redis, time is the condition")]
async fn pause_for(pause: Duration) {
    tokio::time::sleep(pause).await;
}
