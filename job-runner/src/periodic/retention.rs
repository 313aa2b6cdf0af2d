//! Deletes data in ClickHouse after its retention. Each run scans much of the database, so it runs rarely.
//!
//! Two kinds of data: links between the ids of one visitor on two consecutive days (an event soon after midnight carries
//! the previous day's id so that a visit can continue, and needs it no longer when none did), and the bytes of deleted
//! rows.

use std::time::Duration;

use service::{Rounds, Shutdown, every, ticks_after};

use crate::config::Cleanup;
use crate::state::JobState;

/// Maximum delay from the start to the first run, so that a process that restarts often still reaches it.
const MAX_FIRST_DELAY: Duration = Duration::from_secs(600);

pub(crate) async fn visitor_id_links(
    state: JobState,
    config: Cleanup,
    rounds: Rounds,
    shutdown: Shutdown,
) -> anyhow::Result<()> {
    let interval = config.cleanup_interval;
    every(&rounds, ticks_after(interval.min(MAX_FIRST_DELAY), interval), &shutdown, || {
        state.warehouse.expire_visitor_links(state.clock.now() - config.retention)
    })
    .await
}

pub(crate) async fn erase_deleted(state: JobState, rounds: Rounds, shutdown: Shutdown) -> anyhow::Result<()> {
    let interval = state.purge.erase_interval;
    every(&rounds, ticks_after(interval.min(MAX_FIRST_DELAY), interval), &shutdown, || {
        state.warehouse.erase_deleted()
    })
    .await
}
