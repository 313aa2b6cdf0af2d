//! Watches the rounds of a loop. A loop that hangs does no work and reports no error, so while a round takes too long the
//! service is not ready. A round that fails counts as a round: an unavailable store makes no service unready.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::timeout;

use crate::{Check, Readiness};

/// Rounds that a loop may miss.
const MISSED_ROUNDS: u32 = 3;
/// The shortest limit of a round: longer than a round takes that fails because a store doesn't answer.
const MIN_LIMIT: Duration = Duration::from_secs(30);

/// Watches the rounds of one loop. Clones watch the same loop.
#[derive(Clone, Debug)]
pub struct Rounds {
    task: &'static str,
    limit: Duration,
    check: Check,
    progress: Arc<AtomicU64>,
}

impl Rounds {
    /// Watches the loop `task`, which starts a round every `interval`. A round may take three intervals, and half a minute
    /// in any case.
    #[must_use]
    pub fn new(readiness: &Readiness, task: &'static str, interval: Duration) -> Self {
        Self::with_limit(readiness, task, (interval * MISSED_ROUNDS).max(MIN_LIMIT))
    }

    fn with_limit(readiness: &Readiness, task: &'static str, limit: Duration) -> Self {
        let check = readiness.register(task);
        check.ok();
        Self { task, limit, check, progress: Arc::default() }
    }

    /// Returns the loop's name.
    #[must_use]
    pub fn task(&self) -> &'static str {
        self.task
    }

    /// Reports that a long round has completed a part of its work: the limit applies to the next part.
    pub fn progress(&self) {
        self.progress.fetch_add(1, Ordering::Relaxed);
    }

    /// Runs a long part of a round, by a client with timeouts of its own: the time that it takes counts as progress.
    pub async fn long_part<T>(&self, part: impl Future<Output = T>) -> T {
        let mut part = pin!(part);
        loop {
            match timeout(self.limit / 2, &mut part).await {
                Ok(result) => return result,
                Err(_elapsed) => self.progress(),
            }
        }
    }

    /// Runs one round. While it has neither finished nor failed within the limit, the service is not ready.
    pub async fn watch<T>(&self, round: impl Future<Output = T>) -> T {
        let mut round = pin!(round);
        let mut is_stuck = false;
        loop {
            let before = self.progress.load(Ordering::Relaxed);
            let ended = timeout(self.limit, &mut round).await;
            let has_moved = ended.is_ok() || self.progress.load(Ordering::Relaxed) != before;
            if is_stuck == has_moved {
                is_stuck = !has_moved;
                self.report(is_stuck);
            }
            if let Ok(result) = ended {
                return result;
            }
        }
    }

    fn report(&self, is_stuck: bool) {
        let Self { task, limit, check, .. } = self;
        if is_stuck {
            tracing::error!(
                task,
                ?limit,
                "a loop has neither finished nor failed in time; the service is not ready"
            );
            check.failed(format!("has neither finished nor failed for {limit:?}"));
        } else {
            tracing::warn!(task, "a loop that had not finished in time goes on");
            check.ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;
    use crate::Shutdown;

    async fn until(condition: impl Fn() -> bool) {
        while !condition() {
            tokio::time::sleep_until(tokio::time::Instant::now() + Duration::from_millis(1)).await;
        }
    }

    #[tokio::test]
    async fn a_round_that_neither_finishes_nor_fails_makes_the_service_not_ready_until_it_goes_on() {
        let readiness = Readiness::new(&Shutdown::new());
        let rounds = Rounds::with_limit(&readiness, "relay", Duration::from_millis(200));
        let is_ready = || readiness.report().ready;
        let (end, ended) = oneshot::channel::<()>();
        let observing = async {
            until(|| !is_ready()).await;
            rounds.progress();
            until(is_ready).await;
            until(|| !is_ready()).await;
            end.send(()).unwrap();
        };
        tokio::join!(rounds.watch(ended), observing).0.unwrap();
        assert!(is_ready());
    }

    #[tokio::test]
    async fn a_failed_round_is_a_round() {
        let readiness = Readiness::new(&Shutdown::new());
        let rounds = Rounds::new(&readiness, "relay", Duration::ZERO);
        assert!(rounds.watch(async { Err::<(), _>("no store answers") }).await.is_err());
        assert!(readiness.report().ready);
    }

    #[test]
    fn a_round_may_take_three_intervals_and_half_a_minute_in_any_case() {
        let readiness = Readiness::new(&Shutdown::new());
        let limit = |seconds| Rounds::new(&readiness, "purge", Duration::from_secs(seconds)).limit.as_secs();
        assert_eq!((limit(0), limit(10), limit(60)), (30, 30, 180));
    }
}
