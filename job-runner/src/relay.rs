//! From the outbox to the queue and the bus.
//!
//! A row is deleted in the transaction that relayed it: killed in between, it is relayed again, which
//! neither a job nor a signal minds. Rows that can't be relayed now stay where they are.

use std::time::Duration;

use cache::BusEvent;
use contract::Signal;
use futures::{FutureExt, StreamExt};
use queue::Task;
use service::{Check, Shutdown};
use store::outbox;

use crate::Runner;

/// Rows of one transaction.
const BATCH: i64 = 200;
/// How long a row that this version can't read is put off.
const UNREADABLE_FOR: chrono::TimeDelta = chrono::TimeDelta::hours(1);

pub(crate) async fn run(
    runner: Runner,
    every: Duration,
    check: Check,
    shutdown: Shutdown,
) -> anyhow::Result<()> {
    let mut events = std::pin::pin!(runner.bus.subscribe());
    let mut ticks = tokio::time::interval(every);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = shutdown.requested() => return Ok(()),
            _ = ticks.tick() => {}
            Some(event) = events.next() => {
                if !matches!(event, BusEvent::Message(Signal::OutboxFilled) | BusEvent::Lagged) {
                    continue;
                }
                // A burst of signals is one reason to look, not many.
                while let Some(Some(_)) = events.next().now_or_never() {}
            }
        }
        match empty(&runner).await {
            Ok(()) => check.ok(),
            Err(error) => {
                check.failed(format!("{error:#}"));
                tracing::warn!(error = format!("{error:#}"), "the outbox waits");
            }
        }
    }
}

/// Relays until nothing due is left or the queue is full.
async fn empty(runner: &Runner) -> anyhow::Result<()> {
    while relay_signals(runner).await? == BATCH {}
    while relay_jobs(runner).await? == BATCH {}
    Ok(())
}

async fn relay_signals(runner: &Runner) -> anyhow::Result<i64> {
    let now = runner.clock.now();
    let mut tx = store::begin(&runner.db).await?;
    let due = outbox::lock_signals(&mut tx, now, BATCH).await?;
    let mut relayed = Vec::new();
    for row in &due {
        match &row.order {
            Some(signal) => runner.bus.publish(signal).await?,
            None => tracing::error!(row = row.id, "an outbox signal can't be read; it is dropped"),
        }
        relayed.push(row.id);
    }
    outbox::delete(&mut tx, &relayed).await?;
    store::commit(tx).await?;
    Ok(i64::try_from(relayed.len())?)
}

async fn relay_jobs(runner: &Runner) -> anyhow::Result<i64> {
    let now = runner.clock.now();
    let mut tx = store::begin(&runner.db).await?;
    let due = outbox::lock_jobs(&mut tx, now, BATCH).await?;
    if due.is_empty() {
        return Ok(0);
    }
    let mut ids = Vec::new();
    let mut tasks = Vec::new();
    let mut unreadable = Vec::new();
    for row in due {
        match row.order {
            Some(job) => {
                ids.push(row.id);
                tasks.push(Task { id: job.name(), job, traceparent: row.traceparent });
            }
            None => unreadable.push(row.id),
        }
    }
    if !unreadable.is_empty() {
        tracing::error!(rows = ?unreadable, "outbox jobs can't be read by this version; put off");
        outbox::postpone(&mut tx, &unreadable, now + UNREADABLE_FOR).await?;
    }
    let taken = runner.queue.push(tasks).await?;
    ids.truncate(taken);
    outbox::delete(&mut tx, &ids).await?;
    store::commit(tx).await?;
    Ok(i64::try_from(taken)?)
}
