//! Runs work of more than a millisecond of CPU time on threads of its own. On the async threads, the responses of all other
//! connections would wait for it.
//!
//! Of each tenant one piece of work runs or waits for a thread at a time. So the backlog of one tenant delays the work of
//! another by one piece.

use std::num::NonZero;
use std::time::Duration;

use service::admission::Admission;
use uuid::Uuid;

/// Input up to this size is processed at once: that takes less than handing it to another thread may.
pub(crate) const INLINE_BYTES: usize = 16 * 1024;
/// How long work waits for a free thread.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(5);
const MAX_CONCURRENT_PER_TENANT: usize = 1;
/// Pieces of a tenant's work that may wait. Each holds its input in memory.
const MAX_QUEUED_PER_TENANT: usize = 32;

/// Threads for such work, fewer than the machine has cores. Clones share them.
#[derive(Clone)]
pub(crate) struct CpuWork(Admission<Tenant>);

/// The tenant that a piece of work is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Tenant {
    /// A site, by its subdomain.
    Site(Uuid),
    Account(Uuid),
    /// The visitors of an account. Their requests cause work without a cached result, as often as they like. It must not
    /// delay the work of the account that is cached for all.
    Visitors(Uuid),
}

/// No thread became free in time, the tenant has too much work queued, or the work panicked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the edge is busy")]
pub(crate) struct Busy;

impl CpuWork {
    pub(crate) fn new() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        Self::with_threads((cores - 1).max(1))
    }

    fn with_threads(threads: usize) -> Self {
        Self(Admission::new(threads, MAX_CONCURRENT_PER_TENANT, QUEUE_TIMEOUT))
    }

    /// Returns the result of `work` on `bytes` of input. Work that has begun goes on if the caller is cancelled, and its
    /// thread counts as busy until then.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        tenant: Tenant,
        bytes: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Busy> {
        if bytes <= INLINE_BYTES {
            return Ok(work());
        }
        let permit = self.0.acquire_queued(tenant, MAX_QUEUED_PER_TENANT).await.map_err(|_rejected| Busy)?;
        let work = move || {
            let result = work();
            drop(permit);
            result
        };
        tokio::task::spawn_blocking(work).await.map_err(|error| {
            tracing::error!(%error, "work on a thread of its own failed");
            Busy
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    const LARGE: usize = INLINE_BYTES + 1;

    fn site(id: u128) -> Tenant {
        Tenant::Site(Uuid::from_u128(id))
    }

    #[tokio::test]
    async fn work_on_large_input_leaves_the_async_thread_and_holds_its_permit_when_cancelled() {
        let cpu = CpuWork::with_threads(1);
        let this = std::thread::current().id();
        let on_this_thread = move || std::thread::current().id() == this;
        assert_eq!(cpu.run(site(1), INLINE_BYTES, on_this_thread).await, Ok(true));
        assert_eq!(cpu.run(site(1), LARGE, on_this_thread).await, Ok(false));

        let (release, released) = mpsc::channel();
        let mut cancelled = Box::pin(cpu.run(site(1), LARGE, move || released.recv()));
        assert!(futures::poll!(cancelled.as_mut()).is_pending());
        drop(cancelled);
        let mut other = Box::pin(cpu.run(site(2), LARGE, || 7));
        assert!(futures::poll!(other.as_mut()).is_pending(), "the thread is still busy");
        release.send(()).unwrap();
        assert_eq!(other.await, Ok(7));
    }

    #[tokio::test]
    async fn a_tenant_with_a_backlog_of_expensive_pages_delays_others_by_one_page() {
        let cpu = CpuWork::with_threads(1);
        // Each page of the attacker takes until the test releases it.
        let (releases, mut pages): (Vec<_>, Vec<_>) = (0..=MAX_QUEUED_PER_TENANT)
            .map(|_| {
                let (release, released) = mpsc::channel::<()>();
                (release, Box::pin(cpu.run(site(1), LARGE, move || released.recv())))
            })
            .unzip();
        for page in &mut pages {
            assert!(futures::poll!(page.as_mut()).is_pending());
        }
        assert_eq!(cpu.run(site(1), LARGE, || ()).await, Err(Busy), "the attacker's queue is bounded");

        let mut other = Box::pin(cpu.run(site(2), LARGE, || "rendered"));
        assert!(futures::poll!(other.as_mut()).is_pending());
        let mut attacked = Box::pin(cpu.run(Tenant::Visitors(Uuid::from_u128(3)), LARGE, || "prefilled"));
        assert!(futures::poll!(attacked.as_mut()).is_pending());
        releases[0].send(()).unwrap();
        assert_eq!(pages.remove(0).await, Ok(Ok(())));
        assert!(futures::poll!(pages[0].as_mut()).is_pending(), "the attacker's next page waits behind them");
        assert_eq!((other.await, attacked.await), (Ok("rendered"), Ok("prefilled")));
        for (page, release) in pages.into_iter().zip(&releases[1..]) {
            release.send(()).unwrap();
            assert_eq!(page.await, Ok(Ok(())));
        }
    }
}
