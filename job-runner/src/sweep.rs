//! Periodic sweeps that find due work: expired trials, emails, unreferenced bytes, and work that an emptied queue or a
//! killed worker left behind. Postgres is the source of truth; queueing the same work twice is safe.

use service::{Shutdown, every, ticks};

use crate::config::Mail;
use crate::jobs::{blobs, mails, purges};
use crate::state::JobState;

pub(crate) async fn purge(state: JobState, shutdown: Shutdown) -> anyhow::Result<()> {
    every("purge", ticks(state.purge.poll_interval), &shutdown, || purge_once(&state)).await
}

/// Deletes expired data. Shutdown may cancel it between two batches; the next sweep finds the rest.
async fn purge_once(state: &JobState) -> anyhow::Result<()> {
    purges::delete_expired_trials(state).await?;
    purges::delete_expired_submissions(state).await?;
    purges::delete_replaced_secrets(state).await?;
    purges::enqueue_due(state).await
}

pub(crate) async fn collect_garbage(state: JobState, shutdown: Shutdown) -> anyhow::Result<()> {
    let ticks = ticks(state.garbage_collection.poll_interval);
    every("garbage_collection", ticks, &shutdown, || blobs::delete_unreferenced(&state)).await
}

pub(crate) async fn delete_orphans(state: JobState, shutdown: Shutdown) -> anyhow::Result<()> {
    let ticks = ticks(state.garbage_collection.orphan_scan_interval);
    every("orphan_scan", ticks, &shutdown, || blobs::delete_orphans(&state)).await
}

pub(crate) async fn mail(state: JobState, config: Mail, shutdown: Shutdown) -> anyhow::Result<()> {
    every("mail", ticks(config.poll_interval), &shutdown, || mails::enqueue_due(&state, config.batch_size))
        .await
}
