//! Limits how many zips are unpacked at once and how many inflated bytes they hold in memory. Without it a few small
//! requests of one account take the memory and the cores of all others.

use std::sync::Arc;

use service::admission::{Admission, Permit};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use uuid::Uuid;
use web::{Code, Problem};

use crate::config::Deploys;

/// Zips of one account that are unpacked at once.
const MAX_CONCURRENT_PER_ACCOUNT: usize = 1;
/// Upper bound of inflated bytes in memory, in KiB. Larger than the largest file of any plan.
const MAX_INFLATED_KIB: usize = 64 << 10;
/// `Retry-After` of a rejected deploy.
const RETRY_AFTER_SECONDS: u64 = 10;

/// The limits of unpacking.
#[derive(Debug)]
pub struct Unpacking {
    admission: Admission<Uuid>,
    memory: InflatedMemory,
}

impl Unpacking {
    pub(crate) fn new(config: &Deploys) -> Self {
        let admission =
            Admission::new(config.max_concurrent, MAX_CONCURRENT_PER_ACCOUNT, config.queue_timeout);
        Self { admission, memory: InflatedMemory(Arc::new(Semaphore::new(MAX_INFLATED_KIB))) }
    }

    /// Waits for a permit, first of the account and then of the total. Returns 503 after the queue timeout.
    pub(crate) async fn acquire(&self, account_id: Uuid) -> Result<Permit<Uuid>, Problem> {
        self.admission.acquire(account_id).await.map_err(|_timeout| {
            Problem::new(Code::Unavailable, "too many deploys are being processed; nothing was changed")
                .hint("process one deploy after the other")
                .retry_after(RETRY_AFTER_SECONDS)
        })
    }

    /// The memory that all zips share.
    pub(super) fn memory(&self) -> InflatedMemory {
        self.memory.clone()
    }
}

/// A bound on inflated bytes in memory, from before a file is inflated until it is stored.
#[derive(Debug, Clone)]
pub(super) struct InflatedMemory(Arc<Semaphore>);

impl InflatedMemory {
    /// Waits for the share of a file. Returns `None` only if the semaphore is closed, which it never is.
    pub(super) async fn acquire(&self, bytes: u64) -> Option<OwnedSemaphorePermit> {
        let kib =
            usize::try_from(bytes.div_ceil(1 << 10)).unwrap_or(MAX_INFLATED_KIB).clamp(1, MAX_INFLATED_KIB);
        Arc::clone(&self.0).acquire_many_owned(u32::try_from(kib).unwrap_or(u32::MAX)).await.ok()
    }
}
