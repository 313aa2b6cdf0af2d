//! Messages that this version can't parse, because a newer release wrote them. They wait in the outbox for a newer job-runner:
//! what was accepted is not lost, however the processes of two releases are mixed.

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use contract::{Job, Signal};
use queue::UnreadableTask;
use service::{Shutdown, ticks};
use store::Conn;
use store::outbox::{self, OutboxRow};

use crate::metrics;
use crate::state::JobState;

/// How long a message is postponed at least: a newer job-runner runs beside this one or starts soon.
const DELAY_MIN: TimeDelta = TimeDelta::minutes(1);
/// How long it is postponed at most. Those that a rollback left behind then cost little.
const DELAY_MAX: TimeDelta = TimeDelta::hours(1);
/// Age at which a signal is dropped. Nothing needs it then: cache entries expire and all polls repeat within minutes. Jobs are
/// never dropped.
const SIGNAL_AGE_MAX: TimeDelta = TimeDelta::days(7);
/// Kinds that are logged, each once: their names come from the database.
const LOGGED_KINDS_MAX: usize = 100;
/// Interval of attempts to store a job of the queue.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// The unreadable rows of a batch, to be reported when the transaction that postpones them has committed.
#[must_use]
pub(crate) struct Batch {
    message: &'static str,
    /// The kind of each postponed row.
    postponed: Vec<String>,
    /// Rows that are so old that they are dropped, with their kinds.
    dropped: Vec<(i64, String)>,
}

impl Batch {
    /// Postpones jobs. None is dropped, however old it is.
    pub(crate) async fn of_jobs(
        conn: &mut Conn,
        rows: Vec<OutboxRow<Job>>,
        now: DateTime<Utc>,
    ) -> Result<Self, store::Error> {
        postpone(conn, &rows, now).await?;
        let postponed = rows.into_iter().map(|row| row.kind).collect();
        Ok(Self { message: "job", postponed, dropped: Vec::new() })
    }

    /// Postpones signals, except those that are so old that the caller is to delete them.
    pub(crate) async fn of_signals(
        conn: &mut Conn,
        rows: Vec<OutboxRow<Signal>>,
        now: DateTime<Utc>,
    ) -> Result<Self, store::Error> {
        let (old, waiting): (Vec<_>, Vec<_>) =
            rows.into_iter().partition(|row| now - row.created_at > SIGNAL_AGE_MAX);
        postpone(conn, &waiting, now).await?;
        let postponed = waiting.into_iter().map(|row| row.kind).collect();
        let dropped = old.into_iter().map(|row| (row.id, row.kind)).collect();
        Ok(Self { message: "signal", postponed, dropped })
    }

    /// Returns the ids of the rows that are dropped.
    pub(crate) fn dropped(&self) -> impl Iterator<Item = i64> {
        self.dropped.iter().map(|(id, _)| *id)
    }
}

async fn postpone<T>(conn: &mut Conn, rows: &[OutboxRow<T>], now: DateTime<Utc>) -> Result<(), store::Error> {
    if rows.is_empty() {
        return Ok(());
    }
    let rows: Vec<_> = rows.iter().map(|row| (row.id, now + delay(now - row.created_at))).collect();
    outbox::postpone(conn, &rows).await
}

/// Returns how long a message of this age is postponed. The delay grows with the age: many rows that no program can parse
/// must not keep the relay busy.
fn delay(age: TimeDelta) -> TimeDelta {
    (age / 2).clamp(DELAY_MIN, DELAY_MAX)
}

/// Reports unreadable rows of the outbox: counts them, and logs each kind once.
#[derive(Default)]
pub(crate) struct Reports {
    logged: BTreeSet<String>,
}

impl Reports {
    /// Reports a batch. Call it when its transaction has committed.
    pub(crate) fn add(&mut self, batch: Batch) {
        let Batch { message, postponed, dropped } = batch;
        if !postponed.is_empty() {
            count(message, postponed.len());
        }
        for kind in postponed {
            if self.logged.len() < LOGGED_KINDS_MAX && self.logged.insert(kind.clone()) {
                tracing::error!(
                    message,
                    kind,
                    "this version can't parse outbox rows of this kind; they wait for a newer job-runner"
                );
            }
        }
        if !dropped.is_empty() {
            let kinds: BTreeSet<_> = dropped.iter().map(|(_, kind)| kind.as_str()).collect();
            let days = SIGNAL_AGE_MAX.num_days();
            tracing::error!(
                ?kinds,
                rows = dropped.len(),
                days,
                "dropped outbox signals that no job-runner could parse in this time"
            );
        }
    }
}

/// Moves a job of the queue back to the outbox. Tries again until `shutdown`; returns whether it was stored.
pub(crate) async fn return_to_outbox(state: JobState, task: UnreadableTask, shutdown: Shutdown) -> bool {
    let mut ticks = ticks(RETRY_INTERVAL);
    while shutdown.unless_requested(ticks.tick()).await.is_some() {
        match insert(&state, &task).await {
            Ok(()) => {
                count("job", 1);
                tracing::warn!(
                    id = task.id,
                    "returned a queued job to the outbox that this version can't parse; it waits for a newer job-runner"
                );
                return true;
            }
            Err(error) => tracing::warn!(%error, "failed to return a job to the outbox; retrying"),
        }
    }
    false
}

async fn insert(state: &JobState, task: &UnreadableTask) -> Result<(), store::Error> {
    let now = state.clock.now();
    let mut conn = store::acquire(&state.db).await?;
    outbox::insert_unreadable_job(&mut conn, &task.job, task.traceparent.as_deref(), now, now + DELAY_MIN)
        .await
}

fn count(message: &'static str, rows: usize) {
    metrics::UNREADABLE_MESSAGES_POSTPONED.add(rows as u64, &[("message", message)]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delay_grows_with_the_age_up_to_an_hour() {
        for (age, expected) in [(-5, 1), (0, 1), (2, 1), (20, 10), (119, 59), (120, 60), (10_000, 60)] {
            let found = delay(TimeDelta::minutes(age)).num_minutes();
            assert_eq!(found, expected, "{age} minutes old");
        }
    }
}
