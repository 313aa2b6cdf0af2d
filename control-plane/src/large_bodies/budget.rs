//! Limits how many bytes of large request bodies are in memory at once. A body takes its share as it arrives, so one that
//! is announced and never comes takes nothing from others. A small body takes no share, so large ones can't delay it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use service::admission::{Admission, Permit, UNLIMITED};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use uuid::Uuid;
use web::{Code, Problem};

/// Size beyond which a body is large.
pub(super) const LARGE_BYTES: usize = 1 << 20;
/// Large bodies that an account sends at a time.
const MAX_LARGE_PER_ACCOUNT: usize = 1;
/// `Retry-After` of a rejected body.
const RETRY_AFTER_SECONDS: u64 = 5;

/// Section `[large_bodies]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LargeBodies {
    /// MiB of large bodies in memory at once.
    pub max_in_flight_mib: u32,
    /// How long a request waits for its share of the budget.
    #[serde(with = "service::config::duration")]
    pub queue_timeout: Duration,
    /// How long a large body may arrive too slowly.
    #[serde(with = "service::config::duration")]
    pub stall_timeout: Duration,
    /// How long a body may take to arrive.
    #[serde(with = "service::config::duration")]
    pub receive_timeout: Duration,
}

/// The budget that all large bodies share. One permit of its semaphore stands for one KiB.
#[derive(Debug)]
pub struct BodyBudget {
    config: LargeBodies,
    max_kib: usize,
    kibibytes: Arc<Semaphore>,
    large: Admission<Uuid>,
}

/// The share of one body, which grows as the body arrives. Dropping it releases the share.
#[derive(Debug)]
pub(crate) struct BodyShare {
    account_id: Uuid,
    bytes: usize,
    held: Option<OwnedSemaphorePermit>,
    /// The account's permit, once the body is large.
    large: Option<Permit<Uuid>>,
}

impl BodyBudget {
    pub(crate) fn new(config: &LargeBodies) -> Self {
        let max_kib = (config.max_in_flight_mib as usize) << 10;
        Self {
            config: config.clone(),
            max_kib,
            kibibytes: Arc::new(Semaphore::new(max_kib)),
            large: Admission::new(UNLIMITED, MAX_LARGE_PER_ACCOUNT, config.queue_timeout),
        }
    }

    /// The limits of each body.
    pub(super) fn config(&self) -> &LargeBodies {
        &self.config
    }

    /// How long a body may take to arrive.
    pub(crate) fn receive_timeout(&self) -> Duration {
        self.config.receive_timeout
    }

    /// Returns the empty share of a new body.
    pub(crate) fn share(&self, account_id: Uuid) -> BodyShare {
        BodyShare { account_id, bytes: 0, held: None, large: None }
    }

    /// Waits until the share has room for more bytes. Returns 503 after the queue timeout. A body of any size fits alone,
    /// even into a smaller budget.
    pub(crate) async fn grow(&self, share: &mut BodyShare, bytes: usize) -> Result<(), Problem> {
        share.bytes += bytes;
        if share.bytes <= LARGE_BYTES {
            return Ok(());
        }
        if share.large.is_none() {
            let permit = self.large.acquire(share.account_id).await;
            let permit = permit.map_err(|_timeout| {
                busy("another large request of this account is in progress; nothing was changed")
                    .hint("send one after the other")
            })?;
            share.large = Some(permit);
        }
        let held = share.held.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let missing = share.bytes.div_ceil(1 << 10).min(self.max_kib).saturating_sub(held);
        let missing = u32::try_from(missing).unwrap_or(u32::MAX);
        let waiting = Arc::clone(&self.kibibytes).acquire_many_owned(missing);
        match tokio::time::timeout(self.config.queue_timeout, waiting).await {
            Ok(Ok(permit)) => match &mut share.held {
                Some(held) => held.merge(permit),
                None => share.held = Some(permit),
            },
            Ok(Err(_)) | Err(_) => {
                return Err(busy("too many large requests are in progress; nothing was changed"));
            }
        }
        Ok(())
    }
}

impl BodyShare {
    /// Returns how many bytes have arrived.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Extension of a request that this process sends to itself: the share of the body that it was made from. Without it, the
/// request would wait for the memory that it already takes.
#[derive(Debug, Clone)]
pub(crate) struct HandedShare(Arc<Mutex<Option<BodyShare>>>);

impl HandedShare {
    /// Hands a share over if its body is large; others hold nothing.
    pub(crate) fn of_large(share: BodyShare) -> Option<Self> {
        share.large.is_some().then(|| Self(Arc::new(Mutex::new(Some(share)))))
    }

    /// Takes the share for a body that arrives anew, in place of the one that it was made for.
    pub(super) fn take(&self) -> Option<BodyShare> {
        let share = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        share.map(|share| BodyShare { bytes: 0, ..share })
    }
}

fn busy(detail: &'static str) -> Problem {
    Problem::new(Code::Unavailable, detail).retry_after(RETRY_AFTER_SECONDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    fn budget_of(max_in_flight_mib: u32) -> BodyBudget {
        let (queue_timeout, stall_timeout) = (Duration::from_millis(10), Duration::from_secs(10));
        let receive_timeout = Duration::from_secs(120);
        BodyBudget::new(&LargeBodies { max_in_flight_mib, queue_timeout, stall_timeout, receive_timeout })
    }

    #[tokio::test]
    async fn a_body_takes_its_share_as_it_arrives() {
        let budget = budget_of(4);
        let (mut one, mut other) = (budget.share(Uuid::from_u128(1)), budget.share(Uuid::from_u128(2)));
        for _ in 0..2 {
            budget.grow(&mut one, MIB).await.unwrap();
        }
        budget.grow(&mut other, 2 * MIB).await.unwrap();
        assert_eq!(budget.grow(&mut other, 1).await.unwrap_err().code(), Code::Unavailable);
        drop(one);
        budget.grow(&mut other, 2 * MIB - 1).await.unwrap();
        budget.grow(&mut other, 100 * MIB).await.unwrap();
        drop(other);
        assert_eq!(budget.kibibytes.available_permits(), 4 << 10);
    }

    #[tokio::test]
    async fn two_accounts_that_fill_the_budget_keep_no_small_body_waiting() {
        let budget = budget_of(4);
        let (mut one, mut other) = (budget.share(Uuid::from_u128(1)), budget.share(Uuid::from_u128(2)));
        budget.grow(&mut one, 2 * MIB).await.unwrap();
        budget.grow(&mut other, 2 * MIB).await.unwrap();
        let mut small = budget.share(Uuid::from_u128(3));
        for _ in 0..16 {
            budget.grow(&mut small, MIB / 16).await.unwrap();
        }
        assert_eq!(budget.grow(&mut small, 1).await.unwrap_err().code(), Code::Unavailable, "it is large");
    }

    #[tokio::test]
    async fn a_body_takes_over_the_share_of_the_one_it_was_made_from() {
        for max_in_flight_mib in [1, 100] {
            let budget = budget_of(max_in_flight_mib);
            let mut outer = budget.share(Uuid::from_u128(1));
            budget.grow(&mut outer, 3 * MIB).await.unwrap();
            let handed = HandedShare::of_large(outer).unwrap();
            let mut inner = handed.take().unwrap();
            assert!(handed.clone().take().is_none(), "it is taken once");
            for _ in 0..4 {
                budget.grow(&mut inner, MIB).await.unwrap();
            }
            drop(inner);
            assert_eq!(budget.kibibytes.available_permits(), budget.max_kib);
            budget.grow(&mut budget.share(Uuid::from_u128(1)), 2 * MIB).await.unwrap();
        }
        let budget = budget_of(1);
        let mut small = budget.share(Uuid::from_u128(1));
        budget.grow(&mut small, MIB).await.unwrap();
        assert!(HandedShare::of_large(small).is_none());
    }

    #[tokio::test]
    async fn an_account_sends_one_large_body_at_a_time() {
        let budget = budget_of(100);
        let account_id = Uuid::from_u128(1);
        let (mut large, mut second) = (budget.share(account_id), budget.share(account_id));
        budget.grow(&mut large, 2 * MIB).await.unwrap();
        budget.grow(&mut second, MIB).await.unwrap();
        let refused = budget.grow(&mut second, 1).await.unwrap_err();
        assert!(refused.detail().contains("of this account"), "{refused:?}");
        budget.grow(&mut budget.share(Uuid::from_u128(2)), 2 * MIB).await.unwrap();
        drop(large);
        budget.grow(&mut second, 1).await.unwrap();
    }
}
