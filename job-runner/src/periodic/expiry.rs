//! Deletes rows after their retention: entries that were archived with their page, stored responses of idempotent calls, and
//! logs of changes.

use std::time::Duration;

use chrono::{DateTime, Utc};
use service::metrics::Counter;
use service::{Rounds, Shutdown, every, ticks};
use store::Conn;

use crate::config::{Cleanup, Polling};
use crate::metrics;
use crate::state::JobState;

/// Archives deleted by one statement; each holds up to 500 entries.
const ARCHIVES: i64 = 100;
/// Stored responses deleted by one statement.
const RESPONSES: i64 = 1_000;
/// Changes deleted by one statement.
const CHANGES: i64 = 1_000;

pub(crate) async fn archives(
    state: JobState,
    config: Cleanup,
    rounds: Rounds,
    shutdown: Shutdown,
) -> anyhow::Result<()> {
    let (counter, delete) = (&metrics::ARCHIVES_DELETED, store::archives::delete_expired);
    every(&rounds, ticks(config.cleanup_interval), &shutdown, || {
        delete_expired(&state, &rounds, config.retention, ARCHIVES, counter, delete)
    })
    .await
}

pub(crate) async fn idempotency(
    state: JobState,
    config: Cleanup,
    rounds: Rounds,
    shutdown: Shutdown,
) -> anyhow::Result<()> {
    let (counter, delete) = (&metrics::IDEMPOTENCY_RECORDS_DELETED, store::idempotency::delete_expired);
    every(&rounds, ticks(config.cleanup_interval), &shutdown, || {
        delete_expired(&state, &rounds, config.retention, RESPONSES, counter, delete)
    })
    .await
}

pub(crate) async fn activity(
    state: JobState,
    config: Polling,
    rounds: Rounds,
    shutdown: Shutdown,
) -> anyhow::Result<()> {
    let (counter, delete) = (&metrics::ACTIVITY_ROWS_DELETED, store::activity::delete_expired);
    // Each row knows when it expires, because that depends on the plan.
    every(&rounds, ticks(config.poll_interval), &shutdown, || {
        delete_expired(&state, &rounds, Duration::ZERO, CHANGES, counter, delete)
    })
    .await
}

/// Deletes all rows older than `retention`, `limit` rows by one statement, and counts them.
pub(crate) async fn delete_expired(
    state: &JobState,
    rounds: &Rounds,
    retention: Duration,
    limit: i64,
    counter: &Counter,
    delete: impl AsyncFn(&mut Conn, DateTime<Utc>, i64) -> Result<u64, store::Error>,
) -> Result<(), store::Error> {
    let before = state.clock.now() - retention;
    let mut conn = store::acquire(&state.maintenance_db).await?;
    loop {
        rounds.progress();
        let deleted = delete(&mut conn, before, limit).await?;
        counter.add(deleted, &[]);
        if deleted < limit.unsigned_abs() {
            return Ok(());
        }
    }
}
