//! Limits how many zips are processed and unpacked at once, and how many bytes of their files are in memory. Without it a
//! few small requests of one account take the memory and the cores of all others.

use std::sync::Arc;

use service::admission::{Admission, Permit, Timeout, UNLIMITED};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use uuid::Uuid;
use web::{Code, Problem};

use crate::config::Deploys;

/// Zips of one account that are processed at once.
const MAX_CONCURRENT_PER_ACCOUNT: usize = 1;
/// Upper bound of bytes in memory that are being stored, in KiB.
const MAX_STORING_KIB: u64 = 32 << 10;
/// `Retry-After` of a rejected deploy.
const RETRY_AFTER_SECONDS: u64 = 10;

/// The limits of deploys.
#[derive(Debug)]
pub struct DeployAdmission {
    accounts: Admission<Uuid>,
    /// Permits for unpacking, which takes a core and memory. Downloads and uploads need none, so that a slow object store
    /// does not keep other accounts waiting.
    unpacking: Admission<()>,
    storing: Arc<Semaphore>,
}

impl DeployAdmission {
    pub(crate) fn new(config: &Deploys) -> Self {
        let (max, timeout) = (config.max_concurrent, config.queue_timeout);
        Self {
            accounts: Admission::new(UNLIMITED, MAX_CONCURRENT_PER_ACCOUNT, timeout),
            unpacking: Admission::new(max, max, timeout),
            storing: Arc::new(Semaphore::new(MAX_STORING_KIB as usize)),
        }
    }

    /// Waits until the account processes no other deploy. Returns 503 after the queue timeout.
    pub(crate) async fn acquire_account(&self, account_id: Uuid) -> Result<Permit<Uuid>, Problem> {
        self.accounts.acquire(account_id).await.map_err(|Timeout| {
            busy("another deploy of this account is being processed; nothing was changed")
                .hint("process one deploy after the other")
        })
    }

    /// Waits until a zip may be unpacked. Returns 503 after the queue timeout.
    pub(super) async fn acquire_unpacking(&self) -> Result<Permit<()>, Problem> {
        let permit = self.unpacking.acquire(()).await;
        permit.map_err(|Timeout| busy("too many deploys are being unpacked; nothing was changed"))
    }

    /// Waits for memory to store that many bytes. Returns `None` only if the semaphore is closed, which it never is.
    pub(super) async fn acquire_memory(&self, bytes: u64) -> Option<OwnedSemaphorePermit> {
        let kib = bytes.div_ceil(1 << 10).clamp(1, MAX_STORING_KIB);
        Arc::clone(&self.storing).acquire_many_owned(u32::try_from(kib).unwrap_or(u32::MAX)).await.ok()
    }
}

fn busy(detail: &'static str) -> Problem {
    Problem::new(Code::Unavailable, detail).retry_after(RETRY_AFTER_SECONDS)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn few_zips_are_unpacked_at_once_over_all_accounts() {
        let config = Deploys {
            max_open: 20,
            max_concurrent: 2,
            queue_timeout: Duration::from_millis(10),
            lease_ttl: Duration::from_secs(30),
            progress_interval: Duration::from_secs(1),
            max_retained: 5,
            max_previews: 20,
            preview_ttl: Duration::from_secs(60),
        };
        let admission = DeployAdmission::new(&config);
        let (first, _second) =
            (admission.acquire_unpacking().await.unwrap(), admission.acquire_unpacking().await.unwrap());
        let rejected = admission.acquire_unpacking().await.unwrap_err();
        assert_eq!(rejected.code(), Code::Unavailable);
        let accounts = [1, 2, 3].map(|id| admission.acquire_account(Uuid::from_u128(id)));
        let _processed = futures::future::try_join_all(accounts).await.unwrap();
        assert!(admission.acquire_account(Uuid::from_u128(1)).await.is_err(), "one of each account");
        drop(first);
        admission.acquire_unpacking().await.unwrap();
    }
}
