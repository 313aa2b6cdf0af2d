//! Deletes runs that ended longer ago than their account's plan keeps them, and versions of definitions that nothing
//! refers to.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use domain::automations::retention;
use service::{Rounds, Shutdown, every, ticks};
use store::automations::{delete_ended_runs, delete_unused_definitions, list_ended_runs};
use uuid::Uuid;

use crate::metrics;
use crate::state::JobState;

/// Runs, each with its steps, or definitions, deleted by one statement.
const BATCH: i64 = 500;
/// An unused definition is kept for this long, because a transaction may be about to refer to it.
const UNUSED_FOR: TimeDelta = TimeDelta::hours(1);

pub(super) async fn run(
    state: JobState,
    interval: Duration,
    rounds: Rounds,
    shutdown: Shutdown,
) -> anyhow::Result<()> {
    every(&rounds, ticks(interval), &shutdown, || delete(&state, &rounds)).await
}

async fn delete(state: &JobState, rounds: &Rounds) -> Result<(), store::Error> {
    let mut conn = store::acquire(&state.maintenance_db).await?;
    let accounts = list_ended_runs(&mut conn).await?;
    drop(conn);
    for ended in accounts {
        rounds.progress();
        let before = state.clock.now() - retention(ended.plan);
        if ended.oldest >= before {
            continue;
        }
        // The runs of other accounts are deleted all the same.
        if let Err(error) = delete_runs(state, rounds, ended.account_id, before).await {
            tracing::warn!(
                account_id = %ended.account_id,
                error = format!("{error:#}"),
                "deleting the ended runs of an account failed and is retried"
            );
        }
    }
    let mut conn = store::acquire(&state.maintenance_db).await?;
    let before = state.clock.now() - UNUSED_FOR;
    while delete_unused_definitions(&mut conn, before, BATCH).await? == BATCH.unsigned_abs() {
        rounds.progress();
    }
    Ok(())
}

async fn delete_runs(
    state: &JobState,
    rounds: &Rounds,
    account_id: Uuid,
    before: DateTime<Utc>,
) -> Result<(), store::Error> {
    let mut conn = store::acquire(&state.maintenance_db).await?;
    loop {
        rounds.progress();
        let deleted = delete_ended_runs(&mut conn, account_id, before, BATCH).await?;
        metrics::AUTOMATION_RUNS_DELETED.add(deleted, &[]);
        if deleted < BATCH.unsigned_abs() {
            return Ok(());
        }
    }
}
