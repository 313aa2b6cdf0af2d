//! Forgets the answers of calls made under an `Idempotency-Key` once nobody can ask for them any more.

use service::{Shutdown, metrics};

use crate::Runner;
use crate::config::Idempotency;

/// Rows of one statement.
const BATCH: i64 = 1_000;

pub(crate) async fn run(runner: Runner, config: Idempotency, shutdown: Shutdown) -> anyhow::Result<()> {
    let mut turns = tokio::time::interval(config.forget_every);
    turns.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    while shutdown.unless_requested(turns.tick()).await.is_some() {
        if let Some(Err(error)) = shutdown.unless_requested(forget(&runner, &config)).await {
            tracing::warn!(%error, "old answers wait for the next turn");
        }
    }
    Ok(())
}

async fn forget(runner: &Runner, config: &Idempotency) -> Result<(), store::Error> {
    let mut conn = store::acquire(&runner.db).await?;
    let before = runner.clock.now() - config.kept_for;
    loop {
        let deleted = store::idempotency::delete_expired(&mut conn, before, BATCH).await?;
        metrics::counter("job_runner_answer_forget_total").add(deleted, &[]);
        if deleted < BATCH.unsigned_abs() {
            return Ok(());
        }
    }
}
