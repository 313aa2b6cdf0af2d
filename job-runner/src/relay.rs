//! Moves outbox rows to the queue and the bus.
//!
//! A row is deleted in the transaction that relays it. After a kill in between, the row is relayed again, which is safe
//! for both jobs and signals. Rows that can't be relayed now stay in the outbox.

use std::time::Duration;

use contract::Signal;
use queue::Task;
use service::{Rounds, Shutdown};
use store::outbox;

use crate::signalled_polls::SignalledPolls;
use crate::state::JobState;

/// Rows relayed by one transaction.
const BATCH: i64 = 200;
/// How long a row is postponed that this version can't parse.
const UNREADABLE_DELAY: chrono::TimeDelta = chrono::TimeDelta::hours(1);

pub(crate) async fn run(
    state: JobState,
    poll_interval: Duration,
    rounds: Rounds,
    shutdown: Shutdown,
) -> anyhow::Result<()> {
    let mut polls = SignalledPolls::new(&state, poll_interval, Signal::OutboxFilled);
    while polls.next(&shutdown).await.is_some() {
        if let Err(error) = rounds.watch(relay_due(&state, &rounds)).await {
            tracing::warn!(error = format!("{error:#}"), "relaying the outbox failed and is retried");
        }
    }
    Ok(())
}

/// Relays until no due row is left or the queue is full.
async fn relay_due(state: &JobState, rounds: &Rounds) -> anyhow::Result<()> {
    while relay_signals(state).await? == BATCH {
        rounds.progress();
    }
    while relay_jobs(state).await? == BATCH {
        rounds.progress();
    }
    Ok(())
}

async fn relay_signals(state: &JobState) -> anyhow::Result<i64> {
    let now = state.clock.now();
    let mut tx = store::begin(&state.db).await?;
    let due = outbox::lock_signals(&mut tx, now, BATCH).await?;
    if due.is_empty() {
        return Ok(0);
    }
    let (relayed, messages): (Vec<i64>, Vec<_>) = due.into_iter().map(|row| (row.id, row.message)).unzip();
    let signals: Vec<Signal> = messages.into_iter().flatten().collect();
    if signals.len() < relayed.len() {
        tracing::error!(rows = ?relayed, "dropped outbox signals that this version can't parse");
    }
    state.bus.publish_all(&signals).await?;
    outbox::delete(&mut tx, &relayed).await?;
    store::commit(tx).await?;
    Ok(i64::try_from(relayed.len())?)
}

async fn relay_jobs(state: &JobState) -> anyhow::Result<i64> {
    let now = state.clock.now();
    let mut tx = store::begin(&state.db).await?;
    let due = outbox::lock_jobs(&mut tx, now, BATCH).await?;
    if due.is_empty() {
        return Ok(0);
    }
    let mut ids = Vec::new();
    let mut tasks = Vec::new();
    let mut unreadable = Vec::new();
    for row in due {
        match row.message {
            Some(job) => {
                ids.push(row.id);
                tasks.push(Task { id: job.name(), job, traceparent: row.traceparent });
            }
            None => unreadable.push(row.id),
        }
    }
    if !unreadable.is_empty() {
        tracing::error!(rows = ?unreadable, "postponed outbox jobs that this version can't parse");
        outbox::postpone(&mut tx, &unreadable, now + UNREADABLE_DELAY).await?;
    }
    let accepted = state.queue.push(tasks).await?;
    ids.truncate(accepted);
    outbox::delete(&mut tx, &ids).await?;
    store::commit(tx).await?;
    Ok(i64::try_from(accepted)?)
}
