//! Moves outbox rows to the queue and the bus.
//!
//! A row is deleted in the transaction that relays it. After a kill in between, the row is relayed again, which is safe
//! for both jobs and signals. Rows that can't be relayed now stay in the outbox.
//!
//! During an upgrade an older job-runner finds rows that only a newer one can parse. It postpones them; the newer one relays
//! them. Decision: `job-runner/docs/0010-messages-of-newer-releases.md`.

use std::time::Duration;

use contract::{DatedSignal, Signal};
use queue::Task;
use service::{Rounds, Shutdown};
use store::outbox;

use crate::signalled_polls::SignalledPolls;
use crate::state::JobState;
use crate::unreadable::{Batch, Reports};

/// Rows relayed by one transaction.
const BATCH: i64 = 200;

pub(crate) async fn run(
    state: JobState,
    poll_interval: Duration,
    rounds: Rounds,
    shutdown: Shutdown,
) -> anyhow::Result<()> {
    let mut polls = SignalledPolls::new(&state, poll_interval, Signal::OutboxFilled);
    let mut relay = Relay { state, reports: Reports::default() };
    while polls.next(&shutdown).await.is_some() {
        if let Err(error) = rounds.watch(relay.relay_due(&rounds)).await {
            tracing::warn!(error = format!("{error:#}"), "relaying the outbox failed and is retried");
        }
    }
    Ok(())
}

struct Relay {
    state: JobState,
    reports: Reports,
}

impl Relay {
    /// Relays until no due row is left or the queue is full. A batch of jobs follows each batch of signals, so that neither
    /// waits for all of the others.
    async fn relay_due(&mut self, rounds: &Rounds) -> anyhow::Result<()> {
        loop {
            let has_signals = self.relay_signals().await?;
            let has_jobs = self.relay_jobs().await?;
            if !has_signals && !has_jobs {
                return Ok(());
            }
            rounds.progress();
        }
    }

    /// Relays a batch. Returns whether more may be due.
    async fn relay_signals(&mut self) -> anyhow::Result<bool> {
        let now = self.state.clock.now();
        let mut tx = store::begin(&self.state.db).await?;
        let due = outbox::lock_signals(&mut tx, now, BATCH).await?;
        if due.is_empty() {
            return Ok(false);
        }
        let is_full = is_full(due.len());
        let (mut ids, mut signals, mut unreadable) = (Vec::new(), Vec::new(), Vec::new());
        for row in due {
            match row.message {
                Some(signal) => {
                    ids.push(row.id);
                    signals.push(DatedSignal { signal, written_at: Some(row.created_at) });
                }
                None => unreadable.push(row),
            }
        }
        let unreadable = Batch::of_signals(&mut tx, unreadable, now).await?;
        ids.extend(unreadable.dropped());
        self.state.bus.with_messages::<DatedSignal>().publish_all(&signals).await?;
        outbox::delete(&mut tx, &ids).await?;
        store::commit(tx).await?;
        self.reports.add(unreadable);
        Ok(is_full)
    }

    /// Relays a batch. Returns whether more may be due and the queue has space.
    async fn relay_jobs(&mut self) -> anyhow::Result<bool> {
        let now = self.state.clock.now();
        let mut tx = store::begin(&self.state.db).await?;
        let due = outbox::lock_jobs(&mut tx, now, BATCH).await?;
        if due.is_empty() {
            return Ok(false);
        }
        let is_full = is_full(due.len());
        let (mut ids, mut tasks, mut unreadable) = (Vec::new(), Vec::new(), Vec::new());
        for row in due {
            match row.message {
                Some(job) => {
                    ids.push(row.id);
                    tasks.push(Task { id: job.name(), job, traceparent: row.traceparent });
                }
                None => unreadable.push(row),
            }
        }
        let unreadable = Batch::of_jobs(&mut tx, unreadable, now).await?;
        let accepted = self.state.queue.push(tasks).await?;
        let has_space = accepted == ids.len();
        ids.truncate(accepted);
        outbox::delete(&mut tx, &ids).await?;
        store::commit(tx).await?;
        self.reports.add(unreadable);
        Ok(is_full && has_space)
    }
}

fn is_full(rows: usize) -> bool {
    i64::try_from(rows) == Ok(BATCH)
}
