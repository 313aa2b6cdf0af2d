//! Jobs that need no Redis: whoever brings them has found them due in Postgres and holds their leases there. apalis runs
//! them like the others.

use std::panic::AssertUnwindSafe;

use futures::FutureExt as _;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::door::{Brought, Door};
use crate::work::run_jobs;

/// A way to apalis' worker within this process. Clones lead to the same worker.
pub struct Lane<J> {
    name: String,
    entrance: mpsc::UnboundedSender<Brought<J>>,
    door: Door<J>,
}

impl<J> Clone for Lane<J> {
    fn clone(&self) -> Self {
        Self { name: self.name.clone(), entrance: self.entrance.clone(), door: self.door.clone() }
    }
}

impl<J: Send + 'static> Lane<J> {
    /// A lane of this name, in which nothing is yet.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        let (entrance, brought) = mpsc::unbounded_channel();
        Self { name: name.into(), entrance, door: Door::new(brought) }
    }

    /// Starts a job. How many may be under way at once is for the caller to count.
    ///
    /// # Errors
    /// The job, if the lane has ended.
    pub fn start(&self, id: String, job: J) -> Result<(), J> {
        self.entrance.send((id, job)).map_err(|refused| refused.0.1)
    }

    /// Runs jobs until `shutdown`; then those under way end. Gives those that were not begun. A handler that panics has
    /// done with its job: what the job held is dropped.
    pub async fn work<H, F>(&self, handler: H, shutdown: impl Future<Output = ()>) -> Vec<J>
    where
        H: Fn(J) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let stop = CancellationToken::new();
        let guarded = move |job: J| {
            let handler = handler.clone();
            async move {
                if AssertUnwindSafe(async { handler(job).await }).catch_unwind().await.is_err() {
                    tracing::error!("a job panicked");
                }
            }
        };
        let stopping = async {
            shutdown.await;
            stop.cancel();
        };
        tokio::join!(run_jobs(&self.door, guarded, &self.name, &stop), stopping);
        self.door.close()
    }
}
