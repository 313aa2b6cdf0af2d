//! Permits for compression in the background.
//!
//! One body is compressed at a time, because requests have priority. Of each tenant one body waits for a permit at a time,
//! so the backlog of one delays another by one body.

use std::sync::Arc;
use std::time::Duration;

use service::admission::{Admission, Permit};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use uuid::Uuid;

/// Bodies that may wait. Beyond it, a body stays uncompressed until it is loaded again.
const MAX_PENDING: usize = 1_024;
/// Of those, bodies of one tenant.
const MAX_PENDING_PER_TENANT: usize = 64;
/// How long a body waits.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(600);
/// Bodies compressed at a time.
const MAX_CONCURRENT: usize = 1;

/// The queue of all bodies. Clones share it.
#[derive(Clone)]
pub(crate) struct Compressor {
    pending: Arc<Semaphore>,
    admission: Admission<Uuid>,
}

/// The permission to compress one body. Dropping it lets the next one begin.
pub(crate) struct CompressionPermit {
    _permit: Permit<Uuid>,
    _pending: OwnedSemaphorePermit,
}

impl Compressor {
    pub(crate) fn new() -> Self {
        let admission = Admission::new(MAX_CONCURRENT, 1, QUEUE_TIMEOUT);
        Self { pending: Arc::new(Semaphore::new(MAX_PENDING)), admission }
    }

    /// Waits for a permit for a body of this tenant, a site or an account. `None` if too many wait already.
    pub(crate) async fn acquire(&self, tenant: Uuid) -> Option<CompressionPermit> {
        let pending = Arc::clone(&self.pending).try_acquire_owned().ok()?;
        let permit = self.admission.acquire_queued(tenant, MAX_PENDING_PER_TENANT).await.ok()?;
        Some(CompressionPermit { _permit: permit, _pending: pending })
    }
}
