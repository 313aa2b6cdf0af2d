//! Limits how many bytes of large request bodies are in memory at once.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use web::{Code, Problem};

/// Upper bound of one large body.
pub(crate) const MAX_BYTES: usize = 160 << 20;

/// Section `[large_bodies]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LargeBodies {
    /// MiB of large bodies in memory at once.
    pub max_in_flight_mib: u32,
    /// How long a request waits for its share of the budget.
    #[serde(with = "service::config::duration")]
    pub queue_timeout: Duration,
    /// How long a body may take to arrive.
    #[serde(with = "service::config::duration")]
    pub receive_timeout: Duration,
}

/// The budget that all large bodies share. One permit of its semaphore stands for one MiB.
#[derive(Debug)]
pub struct BodyBudget {
    config: LargeBodies,
    mebibytes: Arc<Semaphore>,
}

impl BodyBudget {
    pub(crate) fn new(config: &LargeBodies) -> Self {
        let mebibytes = Arc::new(Semaphore::new(config.max_in_flight_mib as usize));
        Self { config: config.clone(), mebibytes }
    }

    /// How long a body may take to arrive.
    pub(crate) fn receive_timeout(&self) -> Duration {
        self.config.receive_timeout
    }

    /// Waits for the share of a body of this size; without a size it reserves [`MAX_BYTES`]. Returns 503 after the
    /// queue timeout. Dropping the permit releases the share.
    pub(crate) async fn acquire(&self, bytes: Option<usize>) -> Result<OwnedSemaphorePermit, Problem> {
        let mebibytes = bytes.unwrap_or(MAX_BYTES).min(MAX_BYTES).div_ceil(1 << 20);
        let share = u32::try_from(mebibytes).unwrap_or(u32::MAX).clamp(1, self.config.max_in_flight_mib);
        let waiting = Arc::clone(&self.mebibytes).acquire_many_owned(share);
        match tokio::time::timeout(self.config.queue_timeout, waiting).await {
            Ok(Ok(permit)) => Ok(permit),
            Ok(Err(_)) | Err(_) => {
                let detail = "too many large requests are in progress; nothing was changed";
                Err(Problem::new(Code::Unavailable, detail).retry_after(5))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn rejects_a_body_beyond_the_budget() {
        let queue_timeout = Duration::from_millis(10);
        let budget = BodyBudget::new(&LargeBodies {
            max_in_flight_mib: 4,
            queue_timeout,
            receive_timeout: queue_timeout,
        });
        let small = budget.acquire(Some(10)).await.unwrap();
        let larger = budget.acquire(Some((2 << 20) + 1)).await.unwrap();
        assert_eq!(budget.acquire(Some(1)).await.unwrap_err().code(), Code::Unavailable);
        drop(small);
        drop(larger);
        assert!(budget.acquire(None).await.is_ok(), "a body of any size fits alone");
    }
}
