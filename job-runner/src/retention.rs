//! What ClickHouse forgets now and then, as each turn costs it a look at much that it holds: who came on two days in a row
//! (yesterday's id stands on events soon after midnight so that a visit may go on, and has served when it didn't), and
//! the bytes of rows that were deleted.

use std::time::Duration;

use service::Shutdown;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use crate::Runner;
use crate::config::Links;

/// The longest from a start to the first turn: who restarts often has turns all the same.
const FIRST_WITHIN: Duration = Duration::from_secs(600);

pub(crate) async fn links(runner: Runner, config: Links, shutdown: Shutdown) -> anyhow::Result<()> {
    let mut turns = turns(config.forget_every);
    while shutdown.unless_requested(turns.tick()).await.is_some() {
        let before = runner.clock.now() - config.kept_for;
        if let Some(Err(error)) = shutdown.unless_requested(runner.warehouse.forget_previous(before)).await {
            tracing::warn!(%error, "links of ids over midnight wait for the next turn");
        }
    }
    Ok(())
}

pub(crate) async fn deleted(runner: Runner, every: Duration, shutdown: Shutdown) -> anyhow::Result<()> {
    let mut turns = turns(every);
    while shutdown.unless_requested(turns.tick()).await.is_some() {
        if let Some(Err(error)) = shutdown.unless_requested(runner.warehouse.erase_deleted()).await {
            tracing::warn!(%error, "deleted rows stay on the disk until the next turn");
        }
    }
    Ok(())
}

fn turns(every: Duration) -> Interval {
    let mut turns = interval_at(Instant::now() + every.min(FIRST_WITHIN), every);
    turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
    turns
}
