//! Deletes stored responses of idempotent calls after their retention.

use service::{Shutdown, every, metrics, ticks};

use crate::config::Idempotency;
use crate::state::JobState;

/// Rows deleted by one statement.
const BATCH: i64 = 1_000;

pub(crate) async fn run(state: JobState, config: Idempotency, shutdown: Shutdown) -> anyhow::Result<()> {
    every("idempotency", ticks(config.cleanup_interval), &shutdown, || delete_expired(&state, &config)).await
}

async fn delete_expired(state: &JobState, config: &Idempotency) -> Result<(), store::Error> {
    let mut conn = store::acquire(&state.db).await?;
    let before = state.clock.now() - config.retention;
    loop {
        let deleted = store::idempotency::delete_expired(&mut conn, before, BATCH).await?;
        metrics::counter("job_runner_idempotency_records_deleted_total").add(deleted, &[]);
        if deleted < BATCH.unsigned_abs() {
            return Ok(());
        }
    }
}
