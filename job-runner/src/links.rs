//! Forgets who came on two days in a row: yesterday's id stands on events soon after midnight so that a visit may go
//! on, and has served when it didn't.

use service::Shutdown;

use crate::Runner;
use crate::config::Links;

pub(crate) async fn run(runner: Runner, config: Links, shutdown: Shutdown) -> anyhow::Result<()> {
    let mut turns = tokio::time::interval(config.forget_every);
    turns.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    while shutdown.unless_requested(turns.tick()).await.is_some() {
        let before = runner.clock.now() - config.kept_for;
        if let Some(Err(error)) = shutdown.unless_requested(runner.warehouse.forget_previous(before)).await {
            tracing::warn!(%error, "links of ids over midnight wait for the next turn");
        }
    }
    Ok(())
}
