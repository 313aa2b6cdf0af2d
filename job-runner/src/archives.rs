//! Forgets archived entries that nobody wanted back in time.

use service::{Shutdown, metrics};

use crate::Runner;
use crate::config::Archives;

/// Archives of one statement, of up to 500 entries each.
const BATCH: i64 = 100;

pub(crate) async fn run(runner: Runner, config: Archives, shutdown: Shutdown) -> anyhow::Result<()> {
    let mut turns = tokio::time::interval(config.forget_every);
    turns.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    while shutdown.unless_requested(turns.tick()).await.is_some() {
        if let Some(Err(error)) = shutdown.unless_requested(forget(&runner, &config)).await {
            tracing::warn!(%error, "old archives wait for the next turn");
        }
    }
    Ok(())
}

async fn forget(runner: &Runner, config: &Archives) -> Result<(), store::Error> {
    let mut conn = store::acquire(&runner.db).await?;
    let before = runner.clock.now() - config.kept_for;
    loop {
        let deleted = store::archives::delete_expired(&mut conn, before, BATCH).await?;
        metrics::counter("job_runner_archive_forget_total").add(deleted, &[]);
        if deleted < BATCH.unsigned_abs() {
            return Ok(());
        }
    }
}
