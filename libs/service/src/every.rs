//! Periodic work: intervals that don't bunch late ticks, and a loop that runs until shutdown.

pub mod clock_sync;
pub mod master_keys;
pub mod schema;

use std::fmt::Display;
use std::time::Duration;

use tokio::time::{Instant, Interval, MissedTickBehavior};

use crate::{Rounds, Shutdown};

/// Returns an interval that ticks at once and then every `period`. A late tick delays the following ones, so that slow
/// work is not repeated without a pause.
#[must_use]
pub fn ticks(period: Duration) -> Interval {
    ticks_after(Duration::ZERO, period)
}

/// Like [`ticks`], but with the first tick after `first_delay`.
#[must_use]
pub fn ticks_after(first_delay: Duration, period: Duration) -> Interval {
    let mut ticks = tokio::time::interval_at(Instant::now() + first_delay, period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// Runs `work` at every tick until shutdown, which also cancels work in progress. An error is logged under the task's
/// name, and the next tick retries. `rounds` watches the duration of each run. Always returns `Ok`, as a component of
/// [`crate::Lifecycle`] does that was stopped.
pub async fn every<F, E>(
    rounds: &Rounds,
    mut ticks: Interval,
    shutdown: &Shutdown,
    mut work: impl FnMut() -> F,
) -> anyhow::Result<()>
where
    F: Future<Output = Result<(), E>>,
    E: Display,
{
    while shutdown.unless_requested(ticks.tick()).await.is_some() {
        if let Some(Err(error)) = shutdown.unless_requested(rounds.watch(work())).await {
            let (task, error) = (rounds.task(), format!("{error:#}"));
            tracing::warn!(task, error, "periodic work failed and is retried");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Readiness;

    fn rounds(shutdown: &Shutdown) -> Rounds {
        Rounds::new(&Readiness::new(shutdown), "test", Duration::from_secs(1))
    }

    #[tokio::test]
    async fn work_runs_at_every_tick_also_after_an_error_until_shutdown() {
        let (shutdown, period) = (Shutdown::new(), Duration::from_millis(20));
        let (started, mut runs) = (Instant::now(), 0);
        every(&rounds(&shutdown), ticks(period), &shutdown, || {
            runs += 1;
            if runs == 3 {
                shutdown.request();
            }
            std::future::ready(Err::<(), _>("it failed"))
        })
        .await
        .unwrap();
        assert_eq!(runs, 3);
        assert!(started.elapsed() >= period * 2, "only the first run is not delayed");
    }

    #[tokio::test]
    async fn shutdown_cancels_work_in_progress() {
        let shutdown = Shutdown::new();
        let rounds = rounds(&shutdown);
        let work = every(&rounds, ticks(Duration::from_secs(1)), &shutdown, || {
            shutdown.request();
            std::future::pending::<Result<(), String>>()
        });
        work.await.unwrap();
    }
}
