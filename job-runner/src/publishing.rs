//! Publishes pages whose time has come.
//!
//! It sleeps until the next one is due, but looks every now and then, as a page may be scheduled for sooner meanwhile.
//! What is due stands in Postgres, so a page whose time came while nobody ran is published by the first who does; and
//! many may look at once, as each takes what no other has hold of.

use std::time::Duration;

use contract::Signal;
use service::{Shutdown, metrics};
use store::pages::{next_due, publish_due};

use crate::Runner;
use crate::config::Publishing;

/// Pages of one transaction.
const BATCH: i64 = 200;
/// Between two looks, at least: a page that is due may be somebody else's for the moment.
const PAUSE: Duration = Duration::from_millis(20);

pub(crate) async fn run(runner: Runner, config: Publishing, shutdown: Shutdown) -> anyhow::Result<()> {
    let mut pause = Duration::ZERO;
    while shutdown
        .unless_requested(tokio::time::sleep_until(tokio::time::Instant::now() + pause))
        .await
        .is_some()
    {
        pause = match shutdown.unless_requested(publish(&runner)).await {
            None => return Ok(()),
            Some(Ok(until_next)) => until_next.unwrap_or(config.every).clamp(PAUSE, config.every.max(PAUSE)),
            Some(Err(error)) => {
                tracing::warn!(error = format!("{error:#}"), "pages that are due wait for the next look");
                config.every
            }
        };
    }
    Ok(())
}

/// Publishes all that is due; gives how long it is until the next one is.
async fn publish(runner: &Runner) -> anyhow::Result<Option<Duration>> {
    loop {
        let mut tx = store::begin(&runner.db).await?;
        let published = publish_due(&mut tx, runner.clock.now(), BATCH).await?;
        if published == 0 {
            let next = next_due(&mut tx).await?;
            let until =
                |at: chrono::DateTime<chrono::Utc>| (at - runner.clock.now()).to_std().unwrap_or_default();
            return Ok(next.map(until));
        }
        store::commit(tx).await?;
        metrics::counter("job_runner_page_publish_total").add(published as u64, &[]);
        // The relay tells edges; should this be lost, it looks by itself.
        if let Err(error) = runner.bus.publish(&Signal::OutboxFilled).await {
            tracing::debug!(%error, "published pages are told at the relay's next look");
        }
    }
}
