//! Messages that this version can't parse, because a newer release wrote them. They wait in the outbox for a newer job-runner:
//! what was accepted is not lost, however the processes of two releases are mixed.

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use contract::{Job, Signal};
use queue::UnreadableTask;
use service::{Shutdown, metrics, ticks};
use store::Conn;
use store::outbox::{self, OutboxRow};

use crate::state::JobState;

/// How long a message is postponed: a newer job-runner runs beside this one or starts soon.
const DELAY: TimeDelta = TimeDelta::minutes(1);
/// Age at which a signal is dropped. Nothing needs it then: cache entries expire and all polls repeat within minutes. Jobs are
/// never dropped.
const SIGNAL_AGE_MAX: TimeDelta = TimeDelta::days(7);
/// Kinds that are logged, each once: their names come from the database.
const LOGGED_KINDS_MAX: usize = 100;
/// Interval of attempts to store a job of the queue.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Postpones unreadable rows of the outbox, and logs each kind once.
#[derive(Default)]
pub(crate) struct Unreadable {
    logged: BTreeSet<String>,
}

impl Unreadable {
    /// Postpones jobs.
    pub(crate) async fn postpone_jobs(
        &mut self,
        conn: &mut Conn,
        rows: Vec<OutboxRow<Job>>,
        now: DateTime<Utc>,
    ) -> Result<(), store::Error> {
        let rows: Vec<_> = rows.into_iter().map(|row| (row.id, row.kind)).collect();
        self.postpone(conn, "job", &rows, now).await
    }

    /// Postpones signals. Returns the ids of those that are so old that they are dropped.
    pub(crate) async fn postpone_signals(
        &mut self,
        conn: &mut Conn,
        rows: Vec<OutboxRow<Signal>>,
        now: DateTime<Utc>,
    ) -> Result<Vec<i64>, store::Error> {
        let (old, waiting): (Vec<_>, Vec<_>) =
            rows.into_iter().partition(|row| now - row.created_at > SIGNAL_AGE_MAX);
        let waiting: Vec<_> = waiting.into_iter().map(|row| (row.id, row.kind)).collect();
        self.postpone(conn, "signal", &waiting, now).await?;
        if !old.is_empty() {
            let kinds: BTreeSet<_> = old.iter().map(|row| row.kind.as_str()).collect();
            let days = SIGNAL_AGE_MAX.num_days();
            tracing::error!(
                ?kinds,
                rows = old.len(),
                days,
                "dropped outbox signals that no job-runner could parse in this time"
            );
        }
        Ok(old.into_iter().map(|row| row.id).collect())
    }

    async fn postpone(
        &mut self,
        conn: &mut Conn,
        message: &'static str,
        rows: &[(i64, String)],
        now: DateTime<Utc>,
    ) -> Result<(), store::Error> {
        if rows.is_empty() {
            return Ok(());
        }
        let ids: Vec<i64> = rows.iter().map(|(id, _)| *id).collect();
        outbox::postpone(conn, &ids, now + DELAY).await?;
        count(message, ids.len());
        for (_, kind) in rows {
            if self.logged.len() < LOGGED_KINDS_MAX && self.logged.insert(kind.clone()) {
                tracing::error!(
                    message,
                    kind,
                    "this version can't parse outbox rows of this kind; they wait for a newer job-runner"
                );
            }
        }
        Ok(())
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
    outbox::insert_unreadable_job(&mut conn, &task.job, task.traceparent.as_deref(), now, now + DELAY).await
}

fn count(message: &'static str, rows: usize) {
    metrics::counter("job_runner_unreadable_messages_postponed_total")
        .add(rows as u64, &[("message", message)]);
}
