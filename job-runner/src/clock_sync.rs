//! Keeps the job-runner's clock on Postgres' time. Leases, schedules and the ends of trials are compared with it, so several
//! job-runners agree on them even if the clock of one machine is wrong or jumps.

use std::time::Duration;

use service::{Check, Rounds, Shutdown, every, ticks};
use tokio::sync::watch;

use crate::state::JobState;

/// Interval between two measurements. In between, the machine's monotonic clock is accurate enough.
pub(crate) const INTERVAL: Duration = Duration::from_secs(1);

/// Measures until shutdown, and reports whether Postgres answers. Sends `true` after the first measurement.
pub(crate) async fn run(
    state: JobState,
    synced: watch::Sender<bool>,
    (rounds, postgres): (Rounds, Check),
    shutdown: Shutdown,
) -> anyhow::Result<()> {
    let measure = || async {
        let measured = measure(&state, &synced).await;
        match &measured {
            Ok(()) => postgres.ok(),
            Err(error) => postgres.failed(error.to_string()),
        }
        measured
    };
    every(&rounds, ticks(INTERVAL), &shutdown, measure).await
}

async fn measure(state: &JobState, synced: &watch::Sender<bool>) -> Result<(), store::Error> {
    state.clock.follow(store::current_time(&state.db).await?);
    synced.send_replace(true);
    Ok(())
}

/// Runs `task` after the first measurement. Before it, Postgres is unavailable, so no task could work.
pub(crate) async fn after_sync(
    mut synced: watch::Receiver<bool>,
    shutdown: Shutdown,
    task: impl Future<Output = anyhow::Result<()>>,
) -> anyhow::Result<()> {
    let is_synced = async { synced.wait_for(|synced| *synced).await.is_ok() };
    if shutdown.unless_requested(is_synced).await == Some(true) { task.await } else { Ok(()) }
}
