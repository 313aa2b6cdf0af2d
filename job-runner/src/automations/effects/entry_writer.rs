//! Stores entries of many runs in one transaction, with the records of their steps.
//!
//! A commit costs the same for one entry as for a hundred, so entries that arrive while the writers are busy form the
//! next batch. No entry waits for a batch to fill: with a free writer it is written at once. A batch waits for
//! no page and no run: an entry of a page or a run that another transaction has locked is left for a later batch.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use automation::execution::{EffectCall, EffectError, Failure};
use contract::{Change, Signal};
use domain::Transient as _;
use domain::entries::ENTRIES_MAX;
use domain::scopes::{Action, Resource, Scope};
use service::Clock;
use store::automations::{Claim, RunLock, StepRow, lock_runs, store_steps};
use store::entries::{EntryOutcome, NewEntry, insert_entries};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use uuid::Uuid;

use super::abort::{Abort, sleep};
use super::authority::{check, missing};

/// Concurrent transactions. While one waits for the disk, the other runs.
const WRITERS: usize = 2;
/// Most entries of a transaction.
const MAX_ROWS: usize = 128;
/// Pauses before an entry that met another transaction is stored again: doubled from the first to the last. It holds no
/// connection meanwhile.
const PAUSE_MIN: Duration = Duration::from_millis(5);
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// The failure of an entry if its run stayed locked until the time limit of the step.
const BUSY_RUN: &str = "the run was being changed until the time limit of the step; run it again later";

/// An entry of a claimed run.
pub(super) struct NewRunEntry {
    pub(super) account_id: Uuid,
    pub(super) claim: Claim,
    pub(super) entry: NewEntry,
    /// The record of its step.
    pub(super) step: StepRow,
}

/// Collects entries into batches. Clones share one queue.
#[derive(Clone)]
pub(crate) struct EntryWriter {
    db: store::Db,
    clock: Clock,
    queue: Arc<Mutex<Queue>>,
}

#[derive(Default)]
struct Queue {
    pending: VecDeque<Pending>,
    writers: usize,
}

struct Pending {
    new: NewRunEntry,
    signals: mpsc::UnboundedSender<Signal>,
    result: oneshot::Sender<Result<(), Abort>>,
}

impl EntryWriter {
    /// Stores in `db`.
    pub(crate) fn new(db: store::Db, clock: Clock) -> Self {
        Self { db, clock, queue: Arc::default() }
    }

    /// Stores an entry with the record of its step. Until the step's time limit, it is tried again if it meets another
    /// transaction.
    pub(super) async fn store(
        &self,
        new: NewRunEntry,
        call: &EffectCall,
        signals: &mpsc::UnboundedSender<Signal>,
    ) -> Result<(), EffectError> {
        let deadline = Instant::now() + call.timeout;
        let (mut new, mut pause) = (Some(new), PAUSE_MIN);
        loop {
            let Some(next) = new.take() else { return Err(EffectError::Lost) };
            // Kept for another attempt.
            let copy = next.copy();
            let (result, receiver) = oneshot::channel();
            let pending = Pending { new: next, signals: signals.clone(), result };
            if self.queue().push(pending) {
                tokio::spawn(write_all(self.clone()));
            }
            let abort = match receiver.await {
                Ok(Ok(())) => return Ok(()),
                Ok(Err(abort)) => abort,
                // The writer has panicked.
                Err(_closed) => Abort::Lost,
            };
            if let Some(error) = abort.into_final(call, Instant::now() + pause >= deadline) {
                return Err(error);
            }
            sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
            new = Some(copy);
        }
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl NewRunEntry {
    fn copy(&self) -> Self {
        let NewEntry { id, page_id, ref data, submission_id, created_at } = self.entry;
        let entry = NewEntry { id, page_id, data: data.clone(), submission_id, created_at };
        Self { account_id: self.account_id, claim: self.claim, entry, step: self.step.clone() }
    }
}

impl Queue {
    /// Queues an entry. Returns whether the caller must start a writer, which is counted already.
    fn push(&mut self, pending: Pending) -> bool {
        self.pending.push_back(pending);
        let needs_writer = self.writers < WRITERS;
        self.writers += usize::from(needs_writer);
        needs_writer
    }

    /// Removes the next batch; empty if the writer has to end.
    fn next_batch(&mut self) -> Vec<Pending> {
        let size = self.pending.len().min(MAX_ROWS);
        self.writers -= usize::from(size == 0);
        self.pending.drain(..size).collect()
    }
}

/// Writes batches until the queue is empty. A task of its own: a run that is cancelled must not take others with it.
async fn write_all(writer: EntryWriter) {
    loop {
        let batch = writer.queue().next_batch();
        if batch.is_empty() {
            return;
        }
        let (news, waiters): (Vec<_>, Vec<_>) =
            batch.into_iter().map(|one| (one.new, (one.signals, one.result))).unzip();
        let signals = waiters.first().map(|(signals, _)| signals.clone());
        let mut results = write(&writer, &news, signals.as_ref()).await.into_iter();
        for (_, waiter) in waiters {
            // The walk has ended meanwhile; the journal has the record.
            let _ended = waiter.send(results.next().unwrap_or(Err(Abort::Lost)));
        }
    }
}

/// Stores a batch. If Postgres refuses one entry of it, each is stored in a transaction of its own.
async fn write(
    writer: &EntryWriter,
    news: &[NewRunEntry],
    signals: Option<&mpsc::UnboundedSender<Signal>>,
) -> Vec<Result<(), Abort>> {
    match write_batch(writer, news, signals).await {
        Ok(results) => results,
        Err(Abort::Store(error)) if error.is_rejected_statement() && news.len() > 1 => {
            tracing::warn!(%error, entries = news.len(), "a batch of entries was refused and is stored one by one");
            let mut results = Vec::with_capacity(news.len());
            for new in news {
                let one = write_batch(writer, std::slice::from_ref(new), signals).await;
                results.push(one.and_then(|mut results| results.pop().unwrap_or(Err(Abort::Lost))));
            }
            results
        }
        Err(abort) => {
            let mut is_unavailable = false;
            if let Abort::Store(error) = &abort {
                tracing::warn!(%error, entries = news.len(), "storing entries failed");
                is_unavailable = error.is_transient();
            }
            let mut first = Some(abort);
            let next = || if is_unavailable { Abort::Unavailable } else { Abort::Lost };
            news.iter().map(|_| Err(first.take().unwrap_or_else(next))).collect()
        }
    }
}

async fn write_batch(
    writer: &EntryWriter,
    news: &[NewRunEntry],
    signals: Option<&mpsc::UnboundedSender<Signal>>,
) -> Result<Vec<Result<(), Abort>>, Abort> {
    let mut tx = store::begin(&writer.db).await?;
    let claims: Vec<_> = news.iter().map(|new| (new.account_id, new.claim)).collect();
    let locks = lock_runs(&mut tx, &claims).await?;
    let mut results = Vec::with_capacity(news.len());
    for new in news {
        results.push(check_one(&mut tx, new, &locks).await?);
    }
    let allowed: Vec<usize> = (0..news.len()).filter(|&at| results[at].is_ok()).collect();
    let entries: Vec<_> = allowed.iter().map(|&at| (news[at].account_id, news[at].copy().entry)).collect();
    let (mut changes, mut steps): (Vec<Change>, Vec<(Claim, StepRow)>) = (Vec::new(), Vec::new());
    if !entries.is_empty() {
        for (at, outcome) in allowed.into_iter().zip(insert_entries(&mut tx, &entries).await?) {
            match outcome {
                Some(EntryOutcome::Stored(location)) => {
                    let change = Change::from(location);
                    if !changes.contains(&change) {
                        changes.push(change);
                    }
                    steps.push((news[at].claim, news[at].step.clone()));
                }
                Some(refused) => results[at] = Err(refusal(&refused, news[at].entry.page_id).into()),
                None => {
                    let message =
                        "the page was being changed until the time limit of the step; run it again later";
                    results[at] = Err(Abort::Busy(message));
                }
            }
        }
    }
    if steps.is_empty() {
        store::rollback(tx).await?;
        return Ok(results);
    }
    let orders = store::outbox::insert_orders(&mut tx, &[], &changes, None, writer.clock.now()).await?;
    store_steps(&mut tx, &steps).await?;
    if let Err(error) = store::commit(tx).await {
        tracing::warn!(%error, entries = steps.len(), "the outcome of a commit of entries is unknown; the journal decides");
        return Err(Abort::Lost);
    }
    if let Some(signals) = signals {
        for order in orders {
            // The receiver is gone at the end of the process; the relay finds the rows.
            let _ended = signals.send(order);
        }
    }
    Ok(results)
}

/// Checks that the run is still this worker's and that its authority covers the page.
async fn check_one(
    conn: &mut store::Conn,
    new: &NewRunEntry,
    locks: &HashMap<Uuid, RunLock>,
) -> Result<Result<(), Abort>, Abort> {
    let authority = match locks.get(&new.claim.run_id) {
        Some(RunLock::Held(authority)) => authority,
        Some(RunLock::Busy) => return Ok(Err(Abort::Busy(BUSY_RUN))),
        None => return Ok(Err(Abort::Lost)),
    };
    let scope = Scope::new(Resource::Entries, Action::Create);
    let page = (Resource::Pages, new.entry.page_id);
    match check(conn, new.account_id, authority, scope, page).await {
        // The transaction has failed for all.
        Err(Abort::Store(error)) => Err(Abort::Store(error)),
        result => Ok(result),
    }
}

fn refusal(outcome: &EntryOutcome, page_id: Uuid) -> Failure {
    match outcome {
        EntryOutcome::Full => Failure::permanent(format!(
            "the page {page_id} already has the maximum of {ENTRIES_MAX} entries; delete some of them"
        )),
        EntryOutcome::NoTemplate => Failure::permanent(format!(
            "the page {page_id} has no entryTemplate; set one with PUT /api/pages/{page_id}"
        )),
        EntryOutcome::NoPage | EntryOutcome::Stored(_) => missing(Resource::Pages, page_id),
    }
}
