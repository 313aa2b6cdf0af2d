//! Submissions that come while others are being written wait for those, and are then stored together.
//!
//! A write to disk takes as long for one as for a hundred. Nobody waits for company: who finds a free writer is written at
//! once, alone if need be, and the busier it gets, the more go at a time.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cache::Bus;
use contract::Signal;
use store::submissions::{BatchSubmission, StoredBatch, insert_batch};
use tokio::sync::oneshot;
use tokio::time::timeout;
use uuid::Uuid;

/// Statements under way at a time. While one waits for the disk, another is carried out.
const WRITERS: usize = 2;
/// Most submissions, and bytes (of more than one), in a statement.
const MAX_ROWS: usize = 128;
const MAX_BYTES: usize = 1 << 20;
/// Most bytes that wait for a writer: beyond that Postgres is too slow for what comes.
const MAX_WAITING_BYTES: usize = 32 << 20;

/// Where plain submissions are stored.
#[derive(Clone)]
pub(crate) struct GroupCommit {
    db: store::Db,
    bus: Bus<Signal>,
    /// How long a statement may take, which takes milliseconds, before its connection is taken for dead.
    patience: Duration,
    line: Arc<Mutex<Line>>,
}

#[derive(Default)]
struct Line {
    waiting: Vec<Waiting>,
    bytes: usize,
    writers: usize,
}

struct Waiting {
    plain: BatchSubmission,
    told: oneshot::Sender<BatchOutcome>,
}

/// What became of a submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BatchOutcome {
    /// It is stored.
    Stored,
    /// It was left out, and is to be taken by itself.
    LeftOut,
    /// Postgres is away, or too slow; nothing was stored.
    Away,
    /// Postgres went away in the middle.
    Unknown,
}

/// What a newcomer to the line is told.
#[derive(PartialEq, Eq)]
enum Enqueued {
    /// A writer will come by.
    Lined,
    /// They have to bring a writer.
    Short,
    /// There is no room.
    Full,
}

impl GroupCommit {
    /// Stores in `db`; tells `bus` of deliveries that are due then.
    pub(crate) fn new(db: store::Db, bus: Bus<Signal>, patience: Duration) -> Self {
        Self { db, bus, patience, line: Arc::default() }
    }

    /// Stores a submission. If the caller stops waiting it may be stored all the same.
    pub(super) async fn take(&self, plain: BatchSubmission) -> BatchOutcome {
        let (told, fate) = oneshot::channel();
        let joined = self.line().join(Waiting { plain, told });
        match joined {
            Enqueued::Lined => {}
            Enqueued::Short => drop(tokio::spawn(self.clone().write_all())),
            Enqueued::Full => return BatchOutcome::Away,
        }
        fate.await.unwrap_or(BatchOutcome::Unknown)
    }

    /// Writes until nobody waits.
    async fn write_all(self) {
        loop {
            let mut conn = match store::acquire_cancel_safe(&self.db).await {
                Ok(conn) => conn,
                Err(error) => {
                    tracing::warn!(%error, "submissions can't be stored");
                    return self.line().give_up();
                }
            };
            loop {
                let Some(batch) = self.line().next() else { return conn.release() };
                if !self.write(&mut conn, batch).await {
                    break;
                }
            }
        }
    }

    /// Writes what goes together, and tells whoever waits; gives whether the connection is still good.
    async fn write(&self, conn: &mut store::Conn, batch: Vec<Waiting>) -> bool {
        let (all, told): (Vec<_>, Vec<_>) = batch.into_iter().map(|one| (one.plain, one.told)).unzip();
        let (stored, other) = match timeout(self.patience, insert_batch(conn, &all)).await {
            Ok(Ok(stored)) => (stored, BatchOutcome::LeftOut),
            Ok(Err(error)) if error.is_rejected_statement() => {
                tracing::warn!(%error, "submissions that can't be stored together are stored one by one");
                (StoredBatch::default(), BatchOutcome::LeftOut)
            }
            Ok(Err(error)) => {
                tracing::warn!(%error, "postgres went away while submissions were stored");
                (StoredBatch::default(), BatchOutcome::Unknown)
            }
            Err(_elapsed) => {
                tracing::warn!(
                    submissions = all.len(),
                    "postgres doesn't say whether it has stored submissions"
                );
                (StoredBatch::default(), BatchOutcome::Unknown)
            }
        };
        if !stored.webhook_ids.is_empty() {
            tokio::spawn(tell_of_deliveries(self.bus.clone(), stored.webhook_ids));
        }
        let ids: HashSet<Uuid> = stored.ids.into_iter().collect();
        for (one, told) in all.iter().zip(told) {
            tell(told, if ids.contains(&one.id()) { BatchOutcome::Stored } else { other });
        }
        other == BatchOutcome::LeftOut
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Line {
    /// Lines up, if there is room.
    fn join(&mut self, one: Waiting) -> Enqueued {
        if self.bytes > MAX_WAITING_BYTES {
            return Enqueued::Full;
        }
        self.bytes += one.plain.bytes();
        self.waiting.push(one);
        if self.writers == WRITERS {
            return Enqueued::Lined;
        }
        self.writers += 1;
        Enqueued::Short
    }

    /// Whom a writer is to write next; none if nobody waits, and then there is a writer less.
    fn next(&mut self) -> Option<Vec<Waiting>> {
        if self.waiting.is_empty() {
            self.writers -= 1;
            return None;
        }
        let mut bytes = 0;
        let fits = |one: &Waiting| {
            bytes += one.plain.bytes();
            bytes <= MAX_BYTES
        };
        let fitting = self.waiting.iter().take(MAX_ROWS).map(fits).take_while(|fits| *fits).count();
        let rest = self.waiting.split_off(fitting.max(1));
        let batch = std::mem::replace(&mut self.waiting, rest);
        self.bytes -= batch.iter().map(|one| one.plain.bytes()).sum::<usize>();
        Some(batch)
    }

    /// A writer leaves that can't write; who waits is sent away, unless another is there.
    fn give_up(&mut self) {
        self.writers -= 1;
        if self.writers > 0 {
            return;
        }
        self.bytes = 0;
        for one in self.waiting.drain(..) {
            tell(one.told, BatchOutcome::Away);
        }
    }
}

fn tell(told: oneshot::Sender<BatchOutcome>, fate: BatchOutcome) {
    // Whoever has hung up needs not know.
    let _gone = told.send(fate);
}

/// Beside the answers, not before them: Redis may be away, and then this takes its time.
async fn tell_of_deliveries(bus: Bus<Signal>, webhook_ids: Vec<Uuid>) {
    if let Err(error) = bus.publish(&Signal::DeliveriesDue { webhook_ids }).await {
        tracing::debug!(%error, "deliveries wait for the next look");
    }
}
