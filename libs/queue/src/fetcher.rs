//! Claims jobs from Redis for a worker: never more than the worker can start, without delay while jobs are waiting, and
//! with at most one poll a second while the queue is empty.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use serde::de::DeserializeOwned;
use tokio::sync::{Notify, Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::backend::DeliveredJob;
use crate::config::Config;
use crate::error::Error;
use crate::lease::{Lease, LeaseKey, LeasedTask, Leases};
use crate::redis::{self, ClaimedJobs, RedisQueue};
use crate::task::UnreadableHandler;

/// Poll interval of an idle worker that received no notification: finds expired leases and covers lost notifications.
const IDLE_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Pause after an error, so that an unavailable Redis is not flooded with requests.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// Unreadable jobs of one claim that are handed over at a time: each may wait for a connection to Postgres.
const MAX_HANDOVERS: usize = 8;

pub(crate) struct Fetcher<J> {
    pub(crate) redis: Arc<RedisQueue>,
    pub(crate) config: Config,
    pub(crate) leases: Leases,
    pub(crate) done: mpsc::UnboundedSender<LeaseKey>,
    pub(crate) delivered: mpsc::UnboundedSender<DeliveredJob<LeasedTask<J>>>,
    pub(crate) unreadable: UnreadableHandler,
    pub(crate) stop: CancellationToken,
}

impl<J: DeserializeOwned> Fetcher<J> {
    /// Claims jobs until the worker is stopped, and then waits for the unreadable jobs that are being handed over.
    pub(crate) async fn run(self) {
        let mut handovers = JoinSet::new();
        self.claim_until_stopped(&mut handovers).await;
        while handovers.join_next().await.is_some() {}
    }

    async fn claim_until_stopped(&self, handovers: &mut JoinSet<()>) {
        let permits = Arc::new(Semaphore::new(self.config.max_concurrent));
        let notified = Arc::new(Notify::new());
        let _listener = AbortOnDropHandle::new(tokio::spawn(forward_notifications(
            Arc::clone(&self.redis),
            Arc::clone(&notified),
        )));
        let idle_interval = IDLE_POLL_INTERVAL.min(self.config.lease_ttl / 4);
        let worker = worker_name();
        let mut claims = 0_u64;
        while !self.stop.is_cancelled() {
            let Some(free) = self.stop.run_until_cancelled(free_permits(&permits)).await else { return };
            claims += 1;
            while handovers.try_join_next().is_some() {}
            // Not cancelled by `stop`: jobs that Redis has already handed out would have to wait for their lease to expire.
            let claimed = self.claim(free, &format!("{worker}:{claims}"), &permits, handovers).await;
            let pause = match claimed {
                // A full batch: more jobs may be waiting.
                Ok(count) if count == free => continue,
                Ok(_) => idle_interval,
                Err(error) => {
                    tracing::warn!(%error, "claiming jobs failed and is retried");
                    RETRY_INTERVAL
                }
            };
            tokio::select! {
                () = notified.notified() => {}
                () = self.stop.cancelled() => {}
                () = sleep(pause) => {}
            }
        }
    }

    /// Claims up to `max` jobs and delivers them to the worker, except those that this version can't parse, which it begins
    /// to hand over. Returns the number of claimed jobs.
    async fn claim(
        &self,
        max: usize,
        owner: &str,
        permits: &Arc<Semaphore>,
        handovers: &mut JoinSet<()>,
    ) -> Result<usize, Error> {
        let ClaimedJobs { jobs, dropped } = self.redis.claim(max, owner, &self.config).await?;
        if !dropped.is_empty() {
            let runs = self.config.max_runs;
            tracing::error!(
                ?dropped,
                runs,
                "dropped jobs after their last run: their worker died or the handler panicked each time"
            );
        }
        let owner: Arc<str> = owner.into();
        let count = jobs.len();
        let mut unreadable = Vec::new();
        for (id, body) in jobs {
            let key = LeaseKey { id: id.as_str().into(), owner: Arc::clone(&owner) };
            // Always succeeds: only this loop acquires permits, and it claimed no more jobs than permits were free.
            let Ok(permit) = Arc::clone(permits).try_acquire_owned() else { continue };
            let lease = Lease::new(key, self.leases.clone(), self.done.clone(), permit);
            match redis::parse(id.clone(), &body) {
                Ok(task) => {
                    let _worker_stopped = self.delivered.send((task.id.clone(), LeasedTask { task, lease }));
                }
                Err(_) => unreadable.push(UnreadableJob { id, body, lease }),
            }
        }
        if !unreadable.is_empty() {
            let (redis, leases) = (Arc::clone(&self.redis), self.leases.clone());
            let handover = Handover { redis, leases, handler: Arc::clone(&self.unreadable) };
            handovers.spawn(handover.hand_over_all(unreadable));
        }
        Ok(count)
    }
}

/// A claimed job that this version can't parse. Its lease is renewed until it is handed over.
struct UnreadableJob {
    id: String,
    body: String,
    lease: Lease,
}

/// Hands over jobs that this version can't parse, beside the claims: storing one may take as long as Postgres is down.
struct Handover {
    redis: Arc<RedisQueue>,
    leases: Leases,
    handler: UnreadableHandler,
}

impl Handover {
    async fn hand_over_all(self, jobs: Vec<UnreadableJob>) {
        let ids: Vec<_> = jobs.iter().map(|job| job.id.as_str()).collect();
        if let Err(error) = self.redis.forget_expirations(&ids).await {
            tracing::warn!(%error, "the expired leases of unreadable jobs still count as runs");
        }
        futures::stream::iter(jobs).for_each_concurrent(MAX_HANDOVERS, |job| self.hand_over(job)).await;
    }

    async fn hand_over(&self, UnreadableJob { id, body, lease }: UnreadableJob) {
        let is_taken_over = match redis::parse_unreadable(id, &body) {
            Ok(task) => (self.handler)(task).await,
            Err(error) => {
                tracing::error!(%error, "dropped an entry of the queue that is no job of any version");
                true
            }
        };
        if is_taken_over {
            lease.complete();
            return;
        }
        let key = lease.into_key();
        if let Err(error) = self.redis.nack(std::slice::from_ref(&key)).await {
            tracing::warn!(%error, "returning an unreadable job failed; its lease will expire");
        }
        self.leases.remove(std::slice::from_ref(&key));
    }
}

/// Waits until at least one permit is free and returns the number of free permits.
async fn free_permits(permits: &Arc<Semaphore>) -> usize {
    let _first = permits.acquire().await;
    permits.available_permits() + 1
}

/// Turns the notifications of pushes by any process into local wake-ups.
async fn forward_notifications(redis: Arc<RedisQueue>, notified: Arc<Notify>) {
    loop {
        if redis.wait_for_notification().await.is_err() {
            sleep(RETRY_INTERVAL).await;
        }
        notified.notify_one();
    }
}

/// Returns a name that is unique to this run of this worker, so that leases of a dead worker never match.
fn worker_name() -> String {
    use std::hash::{BuildHasher as _, RandomState};
    format!("{}-{:016x}", std::process::id(), RandomState::new().hash_one(()))
}

#[expect(clippy::disallowed_methods, reason = "the pause between two polls of Redis")]
async fn sleep(pause: Duration) {
    tokio::time::sleep(pause).await;
}
