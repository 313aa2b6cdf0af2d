//! Stores concurrent submissions in one transaction.
//!
//! A write to disk takes as long for one row as for a hundred, so submissions that arrive while the writers are busy form
//! the next batch. No submission waits for a batch to fill: with a free writer it is written at once.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cache::Bus;
use contract::Signal;
use store::submissions::{BatchSubmission, StoredBatch, insert_batch};
use tokio::sync::oneshot;
use tokio::time::timeout;
use uuid::Uuid;
use web::Problem;

/// Concurrent statements. While one waits for the disk, the other runs.
const WRITERS: usize = 2;
/// Most submissions of a batch.
const MAX_ROWS: usize = 128;
/// Most bytes of a batch, unless it is a single submission.
const MAX_BYTES: usize = 1 << 20;
/// Upper bound on queued bytes. Beyond it Postgres is slower than the incoming load, and new submissions get 503.
const MAX_QUEUED_BYTES: usize = 32 << 20;

/// Whether a submission was stored; `false` if its batch skipped it.
type StoreResult = Result<bool, Problem>;

/// Stores submissions in batches. Clones share one queue.
#[derive(Clone)]
pub(crate) struct GroupCommit {
    db: store::Db,
    bus: Bus<Signal>,
    /// Timeout of a statement, which normally takes milliseconds. On a timeout its connection is closed.
    timeout: Duration,
    queue: Arc<Mutex<PendingBatch>>,
}

#[derive(Default)]
struct PendingBatch {
    submissions: Vec<PendingSubmission>,
    bytes: usize,
    writers: usize,
}

struct PendingSubmission {
    submission: BatchSubmission,
    result: oneshot::Sender<StoreResult>,
}

impl GroupCommit {
    /// Stores in `db`, and publishes due deliveries on `bus`.
    pub(crate) fn new(db: store::Db, bus: Bus<Signal>, timeout: Duration) -> Self {
        Self { db, bus, timeout, queue: Arc::default() }
    }

    /// Stores a submission. Returns `false` if its batch skipped it, and it must be stored in its own transaction. If the
    /// caller stops waiting, the submission may be stored nevertheless.
    pub(super) async fn store(&self, submission: BatchSubmission) -> Result<bool, Problem> {
        let (result, receiver) = oneshot::channel();
        let needs_writer = self.queue().push(PendingSubmission { submission, result })?;
        if needs_writer {
            tokio::spawn(self.clone().write_all());
        }
        receiver.await.unwrap_or_else(|_closed| Err(Problem::outcome_unknown()))
    }

    /// Writes batches until the queue is empty.
    async fn write_all(self) {
        loop {
            let mut conn = match store::acquire_cancel_safe(&self.db).await {
                Ok(conn) => conn,
                Err(error) => {
                    tracing::warn!(%error, "submissions can't be stored");
                    return self.queue().stop_writer();
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
    async fn write(&self, conn: &mut store::Conn, batch: Vec<PendingSubmission>) -> bool {
        let (submissions, results): (Vec<_>, Vec<_>) =
            batch.into_iter().map(|pending| (pending.submission, pending.result)).unzip();
        let (stored, is_known) = match timeout(self.timeout, insert_batch(conn, &submissions)).await {
            Ok(Ok(stored)) => (stored, true),
            Ok(Err(error)) if error.is_rejected_statement() => {
                tracing::warn!(%error, "a batch of submissions was refused and is stored one by one");
                (StoredBatch::default(), true)
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, "postgres became unavailable while a batch of submissions was stored");
                (StoredBatch::default(), false)
            }
            Err(_elapsed) => {
                let count = submissions.len();
                tracing::warn!(submissions = count, "storing a batch of submissions timed out");
                (StoredBatch::default(), false)
            }
        };
        if !stored.webhook_ids.is_empty() {
            tokio::spawn(publish_deliveries(self.bus.clone(), stored.webhook_ids));
        }
        let ids: HashSet<Uuid> = stored.ids.into_iter().collect();
        for (submission, result) in submissions.iter().zip(results) {
            let stored = ids.contains(&submission.id());
            send(result, if is_known { Ok(stored) } else { Err(Problem::outcome_unknown()) });
        }
        is_known
    }

    fn queue(&self) -> MutexGuard<'_, PendingBatch> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PendingBatch {
    /// Queues a submission. Returns whether the caller must start a writer, which is counted already.
    fn push(&mut self, pending: PendingSubmission) -> Result<bool, Problem> {
        if self.bytes > MAX_QUEUED_BYTES {
            return Err(Problem::nothing_changed());
        }
        self.bytes += pending.submission.bytes();
        self.submissions.push(pending);
        let needs_writer = self.writers < WRITERS;
        self.writers += usize::from(needs_writer);
        Ok(needs_writer)
    }

    /// Removes the next batch; `None` if the queue is empty, and the writer has to end.
    fn next_batch(&mut self) -> Option<Vec<PendingSubmission>> {
        if self.submissions.is_empty() {
            self.writers -= 1;
            return None;
        }
        let mut bytes = 0;
        let fits = |pending: &PendingSubmission| {
            bytes += pending.submission.bytes();
            bytes <= MAX_BYTES
        };
        let fitting = self.submissions.iter().take(MAX_ROWS).map(fits).take_while(|fits| *fits).count();
        let rest = self.submissions.split_off(fitting.max(1));
        let batch = std::mem::replace(&mut self.submissions, rest);
        self.bytes -= batch.iter().map(|pending| pending.submission.bytes()).sum::<usize>();
        Some(batch)
    }

    /// Ends a writer that has no connection. Without another writer, all queued submissions fail.
    fn stop_writer(&mut self) {
        self.writers -= 1;
        if self.writers > 0 {
            return;
        }
        self.bytes = 0;
        for pending in self.submissions.drain(..) {
            send(pending.result, Err(Problem::nothing_changed()));
        }
    }
}

fn send(result: oneshot::Sender<StoreResult>, stored: StoreResult) {
    // The receiver is gone if the client has disconnected.
    let _disconnected = result.send(stored);
}

/// Publishes due deliveries in the background, because this takes long while Redis is unavailable.
async fn publish_deliveries(bus: Bus<Signal>, webhook_ids: Vec<Uuid>) {
    if let Err(error) = bus.publish(&Signal::DeliveriesDue { webhook_ids }).await {
        tracing::debug!(%error, "due deliveries are left to the next poll");
    }
}
