//! Inserts the runs of concurrent requests in one transaction.
//!
//! A write to disk takes as long for one row as for a hundred, and all runs of an account change its counter of the month,
//! so runs that arrive while the writers are busy form the next batch. None waits for a batch to fill: with a free writer it
//! is written at once.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cache::Bus;
use contract::Signal;
use domain::Transient as _;
use service::Clock;
use store::automations::{InsertedRun, NewRun, OverLimit, insert_runs};
use tokio::time::{Instant, timeout};
use uuid::Uuid;
use web::Problem;

use super::pending_run::{PendingRun, RequestedRun};
use super::run_queue::RunQueue;

/// Timeout for a connection, and for a transaction, which normally takes milliseconds.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How long a request waits for its run to be stored.
const MAX_WAIT: Duration = Duration::from_secs(20);

/// Inserts runs in batches. Clones share one queue.
#[derive(Clone)]
pub struct RunInserts {
    db: store::Db,
    bus: Bus<Signal>,
    clock: Clock,
    queue: Arc<Mutex<RunQueue>>,
}

/// Why a transaction has no result.
enum Failure {
    /// Postgres refused a statement because of the data of a run.
    Refused(store::Error),
    /// Nothing was stored, or, if the commit was sent, the outcome is unknown.
    Failed(Problem),
}

impl RunInserts {
    /// Inserts into `db`, and publishes due runs on `bus`.
    pub fn new(db: store::Db, bus: Bus<Signal>, clock: Clock) -> Self {
        Self { db, bus, clock, queue: Arc::default() }
    }

    /// Inserts a run. If the caller stops waiting before its batch is formed, the run is not inserted.
    ///
    /// # Errors
    /// The queue is full, or Postgres is unavailable; the problem says whether the run may have been inserted.
    pub(crate) async fn insert(&self, requested: RequestedRun) -> Result<InsertedRun, Problem> {
        let (pending, result) = PendingRun::new(requested);
        if self.queue().push(pending)? {
            tokio::spawn(self.clone().write_all());
        }
        match timeout(MAX_WAIT, result).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) | Err(_) => Err(Problem::outcome_unknown()),
        }
    }

    /// Writes batches until the queue is empty.
    async fn write_all(self) {
        loop {
            let started = Instant::now();
            let mut conn = match timeout(TIMEOUT, store::acquire_cancel_safe(&self.db)).await {
                Ok(Ok(conn)) => conn,
                failed => {
                    let error = failed.ok().and_then(Result::err).map(|error| error.to_string());
                    tracing::warn!(error, "runs can't be inserted: no connection to postgres");
                    if self.queue().fail_older(started) {
                        continue;
                    }
                    return;
                }
            };
            loop {
                let Some(batch) = self.queue().next_batch() else { return conn.release() };
                let is_usable = self.write(&mut conn, batch.runs).await;
                self.queue().finish(&batch.account_ids);
                if !is_usable {
                    break;
                }
            }
        }
    }

    /// Writes one batch and answers its requests. Returns `false` if the connection must be closed.
    async fn write(&self, conn: &mut store::Conn, batch: Vec<PendingRun>) -> bool {
        let problem = match self.run(conn, &batch).await {
            Ok(results) => {
                self.answer(batch, results);
                return true;
            }
            Err(Failure::Refused(error)) if batch.len() > 1 => {
                tracing::warn!(%error, "a batch of runs was refused; its runs are inserted one by one");
                self.queue().push_back_alone(batch);
                return false;
            }
            Err(Failure::Refused(error)) => Problem::from(error),
            Err(Failure::Failed(problem)) => problem,
        };
        for pending in batch {
            pending.answer(Err(problem.clone()));
        }
        false
    }

    async fn run(&self, conn: &mut store::Conn, batch: &[PendingRun]) -> Result<Vec<InsertedRun>, Failure> {
        let inserting = timeout(TIMEOUT, async {
            let mut tx = store::begin_with_timeout(conn, TIMEOUT).await?;
            let now = self.clock.now();
            let mut results = Vec::with_capacity(batch.len());
            for runs in batch.chunk_by(|a, b| a.requested.account_id == b.requested.account_id) {
                let Some(PendingRun { requested, .. }) = runs.last() else { continue };
                let new: Vec<NewRun> = runs.iter().map(|pending| pending.requested.run.clone()).collect();
                let (account_id, limit) = (requested.account_id, requested.runs_limit);
                results.extend(insert_runs(&mut tx, account_id, now, limit, OverLimit::Refuse, &new).await?);
            }
            Ok::<_, store::Error>((tx, results))
        });
        let (tx, results) = match inserting.await {
            Ok(Ok(inserted)) => inserted,
            Ok(Err(error)) if error.is_rejected_statement() && !error.is_transient() => {
                return Err(Failure::Refused(error));
            }
            Ok(Err(error)) => return Err(Failure::Failed(Problem::from(error))),
            Err(_elapsed) => {
                tracing::warn!(runs = batch.len(), "the insertion of runs timed out");
                return Err(Failure::Failed(Problem::nothing_changed()));
            }
        };
        match timeout(TIMEOUT, store::commit(tx)).await {
            Ok(Ok(())) => Ok(results),
            Ok(Err(error)) => Err(Failure::Failed(Problem::commit_failed(error))),
            Err(_elapsed) => Err(Failure::Failed(Problem::outcome_unknown())),
        }
    }

    fn answer(&self, batch: Vec<PendingRun>, results: Vec<InsertedRun>) {
        let mut account_ids: Vec<Uuid> = Vec::new();
        for (pending, result) in batch.into_iter().zip(results) {
            let account_id = pending.requested.account_id;
            if result == InsertedRun::Queued && account_ids.last() != Some(&account_id) {
                account_ids.push(account_id);
            }
            pending.answer(Ok(result));
        }
        if !account_ids.is_empty() {
            tokio::spawn(publish(self.bus.clone(), Signal::RunsDue { account_ids }));
        }
    }

    fn queue(&self) -> MutexGuard<'_, RunQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Publishes in the background, because this takes long while Redis is unavailable.
async fn publish(bus: Bus<Signal>, signal: Signal) {
    if let Err(error) = bus.publish(&signal).await {
        tracing::debug!(%error, "due runs are left to the next poll");
    }
}
