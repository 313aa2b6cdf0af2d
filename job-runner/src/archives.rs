//! Deletes page entries that were archived with their page, once their retention has passed.

use service::{Shutdown, every, metrics, ticks};

use crate::config::Archives;
use crate::state::JobState;

/// Archives deleted by one statement; each holds up to 500 entries.
const BATCH: i64 = 100;

pub(crate) async fn run(state: JobState, config: Archives, shutdown: Shutdown) -> anyhow::Result<()> {
    every("archives", ticks(config.cleanup_interval), &shutdown, || delete_expired(&state, &config)).await
}

async fn delete_expired(state: &JobState, config: &Archives) -> Result<(), store::Error> {
    let mut conn = store::acquire(&state.db).await?;
    let before = state.clock.now() - config.retention;
    loop {
        let deleted = store::archives::delete_expired(&mut conn, before, BATCH).await?;
        metrics::counter("job_runner_archives_deleted_total").add(deleted, &[]);
        if deleted < BATCH.unsigned_abs() {
            return Ok(());
        }
    }
}
