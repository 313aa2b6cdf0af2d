//! Publishes scheduled pages when their time comes.
//!
//! The task sleeps until the next page is due, but polls in between, because a page may be scheduled for an earlier time.
//! Due pages are stored in Postgres, so a page that came due while no job-runner ran is published later. Several
//! job-runners may poll concurrently: each skips the rows that another one has locked.

use std::time::Duration;

use contract::Signal;
use service::{Rounds, Shutdown};
use store::pages::{find_next_due, publish_due};

use crate::config::Polling;
use crate::metrics;
use crate::state::JobState;

/// Pages published by one transaction.
const BATCH: i64 = 200;
/// Minimum pause between two polls: a due page may be locked by another job-runner for a moment.
const MIN_PAUSE: Duration = Duration::from_millis(20);

pub(crate) async fn run(
    state: JobState,
    config: Polling,
    rounds: Rounds,
    shutdown: Shutdown,
) -> anyhow::Result<()> {
    let max_pause = config.poll_interval.max(MIN_PAUSE);
    let mut pause = Duration::ZERO;
    while shutdown
        .unless_requested(tokio::time::sleep_until(tokio::time::Instant::now() + pause))
        .await
        .is_some()
    {
        pause = match shutdown.unless_requested(rounds.watch(publish(&state, &rounds))).await {
            None => return Ok(()),
            Some(Ok(until_next)) => until_next.unwrap_or(config.poll_interval).clamp(MIN_PAUSE, max_pause),
            Some(Err(error)) => {
                tracing::warn!(error = format!("{error:#}"), "publishing due pages failed and is retried");
                config.poll_interval
            }
        };
    }
    Ok(())
}

/// Publishes all due pages. Returns the time until the next page is due.
async fn publish(state: &JobState, rounds: &Rounds) -> anyhow::Result<Option<Duration>> {
    loop {
        rounds.progress();
        let mut tx = store::begin(&state.db).await?;
        let published = publish_due(&mut tx, state.clock.now(), BATCH).await?;
        if published == 0 {
            let next = find_next_due(&mut tx).await?;
            let until =
                |at: chrono::DateTime<chrono::Utc>| (at - state.clock.now()).to_std().unwrap_or_default();
            return Ok(next.map(until));
        }
        store::commit(tx).await?;
        metrics::PAGES_PUBLISHED.add(published as u64, &[]);
        // The relay notifies the edges. If this signal is lost, the relay polls anyway.
        if let Err(error) = state.bus.publish(&Signal::OutboxFilled).await {
            tracing::debug!(%error, "publishing a signal failed; the relay's next poll finds the published pages");
        }
    }
}
