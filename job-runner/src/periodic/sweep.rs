//! Periodic sweeps that find due work: expired trials, emails, unreferenced bytes, and work that an emptied queue or a
//! killed worker left behind. Postgres is the source of truth; queueing the same work twice is safe.

use service::{Rounds, Shutdown, every, ticks};

use crate::config::Mail;
use crate::jobs::{blobs, mails, purges};
use crate::state::JobState;

pub(crate) async fn purge(state: JobState, rounds: Rounds, shutdown: Shutdown) -> anyhow::Result<()> {
    every(&rounds, ticks(state.purge.poll_interval), &shutdown, || purge_once(&state, &rounds)).await
}

/// Deletes expired data. Shutdown may cancel it between two batches; the next sweep finds the rest.
async fn purge_once(state: &JobState, rounds: &Rounds) -> anyhow::Result<()> {
    purges::delete_expired_trials(state, rounds).await?;
    purges::delete_expired_submissions(state, rounds).await?;
    purges::delete_replaced_secrets(state).await?;
    purges::enqueue_due(state).await
}

pub(crate) async fn collect_garbage(
    state: JobState,
    rounds: Rounds,
    shutdown: Shutdown,
) -> anyhow::Result<()> {
    let ticks = ticks(state.garbage_collection.poll_interval);
    every(&rounds, ticks, &shutdown, || blobs::delete_unreferenced(&state, &rounds)).await
}

pub(crate) async fn delete_orphans(
    state: JobState,
    rounds: Rounds,
    shutdown: Shutdown,
) -> anyhow::Result<()> {
    let ticks = ticks(state.garbage_collection.orphan_scan_interval);
    every(&rounds, ticks, &shutdown, || blobs::delete_orphans(&state)).await
}

pub(crate) async fn mail(
    state: JobState,
    config: Mail,
    rounds: Rounds,
    shutdown: Shutdown,
) -> anyhow::Result<()> {
    every(&rounds, ticks(config.poll_interval), &shutdown, || mails::enqueue_due(&state, config.batch_size))
        .await
}
