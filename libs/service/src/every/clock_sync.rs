//! Keeps a service's clock on that of a store which all services share. Due times and leases are compared between services, so
//! they must agree on the time even if the clock of one machine is wrong or jumps.

use std::fmt::Display;
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::ticks_after;
use crate::{Clock, Rounds, Shutdown};

/// Interval between two reports. In between, the machine's monotonic clock is accurate enough.
pub const INTERVAL: Duration = Duration::from_secs(5);
/// Longest wait for the first report. Until there is one, the machine's clock must do.
const FIRST_TIMEOUT: Duration = Duration::from_secs(3);

/// Lets the clock follow `read`, which returns the time of the store. Returns after the first report, or without one if the
/// store does not answer, with the component that reports further ones until shutdown.
pub async fn follow_from_start<E: Display>(
    clock: Clock,
    rounds: Rounds,
    shutdown: Shutdown,
    read: impl AsyncFn() -> Result<DateTime<Utc>, E>,
) -> impl Future<Output = anyhow::Result<()>> {
    match tokio::time::timeout(FIRST_TIMEOUT, read()).await {
        Ok(Ok(shown)) => clock.follow(shown),
        Ok(Err(_)) | Err(_) => {
            tracing::warn!("the store does not tell the time: this machine's clock is used until it does");
        }
    }
    async move {
        let mut ticks = ticks_after(INTERVAL, INTERVAL);
        while shutdown.unless_requested(ticks.tick()).await.is_some() {
            let Some(found) = shutdown.unless_requested(rounds.watch(read())).await else { break };
            match found {
                Ok(shown) => clock.follow(shown),
                Err(error) => tracing::debug!(%error, "the store does not tell the time"),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Readiness;

    fn rounds(shutdown: &Shutdown) -> Rounds {
        Rounds::new(&Readiness::new(shutdown), "clock", INTERVAL)
    }

    #[tokio::test]
    async fn the_clock_has_the_time_of_the_store_before_the_first_request() {
        let (clock, shutdown) = (Clock::remote(), Shutdown::new());
        let shown = DateTime::from_timestamp(1_700_000_000, 0).unwrap();
        let read = async move || Ok::<_, String>(shown);
        let _component = follow_from_start(clock.clone(), rounds(&shutdown), shutdown, read).await;
        assert!((clock.now() - shown).num_seconds() < 60);
    }

    #[tokio::test(start_paused = true)]
    async fn a_store_that_hangs_does_not_stop_the_start() {
        let (clock, shutdown) = (Clock::remote(), Shutdown::new());
        let read = async || std::future::pending::<Result<DateTime<Utc>, String>>().await;
        let _component = follow_from_start(clock.clone(), rounds(&shutdown), shutdown, read).await;
        assert!(clock.now() > DateTime::from_timestamp(1_700_000_000, 0).unwrap());
    }
}
