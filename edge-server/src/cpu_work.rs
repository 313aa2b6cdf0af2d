//! Runs work of more than a millisecond of CPU time on threads of its own. On the async threads, the responses of all other
//! connections would wait for it.

use std::num::NonZero;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;

/// Input up to this size is processed at once: that takes less than handing it to another thread may.
pub(crate) const INLINE_BYTES: usize = 16 * 1024;
/// How long work waits for a free thread.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(5);

/// Threads for such work, fewer than the machine has cores. Clones share them.
#[derive(Clone)]
pub(crate) struct CpuWork(Arc<Semaphore>);

/// No thread became free in time, or the work panicked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the edge is busy")]
pub(crate) struct Busy;

impl CpuWork {
    pub(crate) fn new() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
        Self(Arc::new(Semaphore::new((cores - 1).max(1))))
    }

    /// Returns the result of `work` on `bytes` of input. Work that has begun goes on if the caller is cancelled, and its
    /// thread counts as busy until then.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        bytes: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Busy> {
        if bytes <= INLINE_BYTES {
            return Ok(work());
        }
        let permit = tokio::time::timeout(QUEUE_TIMEOUT, Arc::clone(&self.0).acquire_owned());
        // The semaphore is never closed.
        let permit = permit.await.map_err(|_elapsed| Busy)?.map_err(|_closed| Busy)?;
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

    #[tokio::test]
    async fn work_on_large_input_leaves_the_async_thread_and_holds_its_permit_when_cancelled() {
        let cpu = CpuWork(Arc::new(Semaphore::new(1)));
        let this = std::thread::current().id();
        let on_this_thread = move || std::thread::current().id() == this;
        assert_eq!(cpu.run(INLINE_BYTES, on_this_thread).await, Ok(true));
        assert_eq!(cpu.run(INLINE_BYTES + 1, on_this_thread).await, Ok(false));

        let (release, released) = mpsc::channel();
        let mut cancelled = Box::pin(cpu.run(usize::MAX, move || released.recv()));
        assert!(futures::poll!(cancelled.as_mut()).is_pending());
        drop(cancelled);
        assert_eq!(cpu.0.available_permits(), 0, "the thread is still busy");
        release.send(()).unwrap();
        assert_eq!(cpu.run(usize::MAX, || 7).await, Ok(7));
    }
}
