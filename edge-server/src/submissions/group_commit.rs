//! Stores concurrent submissions in one transaction.
//!
//! A write to disk takes as long for one row as for a hundred, so submissions that arrive while the writers are busy form
//! the next batch. No submission waits for a batch to fill: with a free writer it is written at once.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cache::Bus;
use contract::Signal;
use store::submissions::{BatchSubmission, StoredBatch, insert_batch};
use tokio::time::{Instant, timeout};
use uuid::Uuid;
use web::Problem;

use super::pending::{PendingSubmission, Waiter};

/// Concurrent statements. While one waits for the disk, the other runs.
const WRITERS: usize = 2;
/// Most submissions of a batch.
const MAX_ROWS: usize = 128;
/// Most bytes of a batch, unless it is a single submission.
const MAX_BYTES: usize = 1 << 20;
/// Upper bound on queued bytes. Beyond it Postgres is slower than the incoming load, and new submissions get 503.
const MAX_QUEUED_BYTES: usize = 32 << 20;

/// Stores submissions in batches. Clones share one queue.
#[derive(Clone)]
pub(crate) struct GroupCommit {
    db: store::Db,
    bus: Bus<Signal>,
    /// Timeout for a connection, and for a transaction, which normally takes milliseconds. On a timeout its connection is
    /// closed.
    timeout: Duration,
    queue: Arc<Mutex<Queue>>,
}

#[derive(Default)]
struct Queue {
    submissions: VecDeque<PendingSubmission>,
    bytes: usize,
    writers: usize,
}

/// The submissions of one transaction, and their requests in the same order.
#[derive(Default)]
struct Batch {
    submissions: Vec<BatchSubmission>,
    waiters: Vec<Waiter>,
    /// Whether the commit was sent to Postgres.
    is_committing: bool,
}

/// The result of a transaction.
enum BatchOutcome {
    Stored(StoredBatch),
    /// Rolled back, because requests ended meanwhile.
    Abandoned,
}

impl GroupCommit {
    /// Stores in `db`, and publishes due deliveries on `bus`.
    pub(crate) fn new(db: store::Db, bus: Bus<Signal>, timeout: Duration) -> Self {
        Self { db, bus, timeout, queue: Arc::default() }
    }

    /// Stores a submission. Returns `false` if its batch skipped it, and it must be stored in its own transaction. If the
    /// caller stops waiting, the submission is not stored, unless its commit was sent to Postgres already.
    ///
    /// # Errors
    /// The submission was not stored by `deadline`, or the queue is full.
    pub(super) async fn store(
        &self,
        submission: BatchSubmission,
        deadline: Instant,
    ) -> Result<bool, Problem> {
        let (pending, result) = PendingSubmission::new(submission);
        if self.queue().push(pending)? {
            tokio::spawn(self.clone().write_all());
        }
        result.wait_until(deadline).await
    }

    /// Writes batches until the queue is empty.
    async fn write_all(self) {
        loop {
            let started = Instant::now();
            let mut conn = match timeout(self.timeout, store::acquire_cancel_safe(&self.db)).await {
                Ok(Ok(conn)) => conn,
                failed => {
                    let error = failed.ok().and_then(Result::err).map(|error| error.to_string());
                    tracing::warn!(error, "submissions can't be stored: no connection to postgres");
                    if self.queue().fail_older(started) {
                        continue;
                    }
                    return;
                }
            };
            loop {
                let Some(batch) = self.queue().next_batch() else { return conn.release() };
                if !self.write(&mut conn, batch).await {
                    break;
                }
            }
        }
    }

    /// Writes one batch. Returns `false` if the connection must be closed.
    async fn write(&self, conn: &mut store::Conn, mut batch: Batch) -> bool {
        loop {
            let (stored, keeps_conn) = match timeout(self.timeout, self.run(conn, &mut batch)).await {
                Ok(Ok(BatchOutcome::Abandoned)) => {
                    // Each round has fewer submissions, so this ends.
                    if batch.remove_ended() {
                        continue;
                    }
                    return true;
                }
                Ok(Ok(BatchOutcome::Stored(stored))) => (Some(stored), true),
                Ok(Err(error)) if error.is_rejected_statement() && !batch.is_committing => {
                    tracing::warn!(%error, "a batch of submissions was refused and is stored one by one");
                    (Some(StoredBatch::default()), false)
                }
                Ok(Err(error)) => {
                    tracing::warn!(%error, "postgres became unavailable while a batch of submissions was stored");
                    (None, false)
                }
                Err(_elapsed) => {
                    let submissions = batch.submissions.len();
                    tracing::warn!(submissions, "storing a batch of submissions timed out");
                    (None, false)
                }
            };
            self.respond(batch, stored);
            return keeps_conn;
        }
    }

    /// Runs the transaction. It is committed only if the requests of all its submissions still wait: a visitor who gave up
    /// while Postgres did not respond sends the submission again.
    async fn run(&self, conn: &mut store::Conn, batch: &mut Batch) -> Result<BatchOutcome, store::Error> {
        let mut tx = store::begin_with_timeout(conn, self.timeout).await?;
        let stored = insert_batch(&mut tx, &batch.submissions).await?;
        if !batch.begin_commit() {
            store::rollback(tx).await?;
            return Ok(BatchOutcome::Abandoned);
        }
        store::commit(tx).await?;
        Ok(BatchOutcome::Stored(stored))
    }

    /// Responds to all requests of a batch. `stored` is `None` if the transaction failed.
    fn respond(&self, batch: Batch, stored: Option<StoredBatch>) {
        let Some(stored) = stored else {
            for waiter in batch.waiters {
                let problem =
                    if batch.is_committing { Problem::outcome_unknown() } else { Problem::nothing_changed() };
                waiter.send(Err(problem));
            }
            return;
        };
        let mut signals = Vec::new();
        if !stored.webhook_ids.is_empty() {
            signals.push(Signal::DeliveriesDue { webhook_ids: stored.webhook_ids });
        }
        if stored.has_triggers {
            signals.push(Signal::TriggersDue);
        }
        if !signals.is_empty() {
            tokio::spawn(publish(self.bus.clone(), signals));
        }
        let ids: HashSet<Uuid> = stored.ids.into_iter().collect();
        for (submission, waiter) in batch.submissions.iter().zip(batch.waiters) {
            waiter.send(Ok(ids.contains(&submission.id())));
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    /// Queues a submission. Returns whether the caller must start a writer, which is counted already.
    fn push(&mut self, pending: PendingSubmission) -> Result<bool, Problem> {
        if self.bytes > MAX_QUEUED_BYTES {
            return Err(Problem::nothing_changed());
        }
        self.bytes += pending.submission.bytes();
        self.submissions.push_back(pending);
        let needs_writer = self.writers < WRITERS;
        self.writers += usize::from(needs_writer);
        Ok(needs_writer)
    }

    /// Removes the next batch, without submissions of ended requests; `None` if the queue is empty, and the writer
    /// has to end.
    fn next_batch(&mut self) -> Option<Batch> {
        let (mut batch, mut bytes) = (Batch::default(), 0);
        while let Some(next) = self.submissions.front() {
            let size = next.submission.bytes();
            let is_full = batch.submissions.len() == MAX_ROWS || bytes + size > MAX_BYTES;
            if is_full && !batch.submissions.is_empty() {
                break;
            }
            let Some(PendingSubmission { submission, waiter, .. }) = self.submissions.pop_front() else {
                break;
            };
            self.bytes -= size;
            if !waiter.has_ended() {
                bytes += size;
                batch.submissions.push(submission);
                batch.waiters.push(waiter);
            }
        }
        if batch.submissions.is_empty() {
            self.writers -= 1;
            return None;
        }
        Some(batch)
    }

    /// Fails the submissions that were queued before a writer began to wait for a connection, which it did not get: another
    /// writer that waits may get none either. Returns whether later ones are left for it; otherwise it has to end.
    fn fail_older(&mut self, began_to_wait: Instant) -> bool {
        while let Some(pending) = self.submissions.pop_front_if(|pending| pending.queued_at <= began_to_wait)
        {
            self.bytes -= pending.submission.bytes();
            pending.waiter.send(Err(Problem::nothing_changed()));
        }
        let has_more = !self.submissions.is_empty();
        self.writers -= usize::from(!has_more);
        has_more
    }
}

impl Batch {
    /// Begins the commit of all submissions. Returns `false`, with nothing begun, if the request of one has ended.
    fn begin_commit(&mut self) -> bool {
        for (position, waiter) in self.waiters.iter().enumerate() {
            if !waiter.begin_commit() {
                self.waiters.iter().take(position).for_each(Waiter::cancel_commit);
                return false;
            }
        }
        self.is_committing = true;
        true
    }

    /// Removes submissions of ended requests. Returns whether any are left.
    fn remove_ended(&mut self) -> bool {
        let all = std::mem::take(&mut self.submissions).into_iter().zip(std::mem::take(&mut self.waiters));
        (self.submissions, self.waiters) = all.filter(|(_, waiter)| !waiter.has_ended()).unzip();
        !self.submissions.is_empty()
    }
}

/// Publishes signals in the background, because this takes long while Redis is unavailable.
async fn publish(bus: Bus<Signal>, signals: Vec<Signal>) {
    if let Err(error) = bus.publish_all(&signals).await {
        tracing::debug!(%error, "due deliveries and triggers are left to the next poll");
    }
}
