//! A queue within this process, without Redis. The caller has claimed its jobs in Postgres and holds their leases there;
//! apalis runs them as it runs the jobs of a [`crate::Queue`].

use std::panic::AssertUnwindSafe;

use futures::FutureExt as _;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::backend::{ChannelBackend, DeliveredJob};
use crate::worker::run_jobs;

/// A queue within this process. Clones feed the same worker.
pub struct InProcessQueue<J> {
    name: String,
    sender: mpsc::UnboundedSender<DeliveredJob<J>>,
    backend: ChannelBackend<J>,
}

impl<J> Clone for InProcessQueue<J> {
    fn clone(&self) -> Self {
        Self { name: self.name.clone(), sender: self.sender.clone(), backend: self.backend.clone() }
    }
}

impl<J: Send + 'static> InProcessQueue<J> {
    /// Creates an empty queue.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        Self { name: name.into(), sender, backend: ChannelBackend::new(receiver) }
    }

    /// Starts a job. The caller limits concurrency. Returns the job as an error if the worker has ended.
    pub fn start(&self, id: String, job: J) -> Result<(), J> {
        self.sender.send((id, job)).map_err(|refused| refused.0.1)
    }

    /// Runs jobs until `shutdown`; running jobs then complete. Returns the jobs that were not started. If a handler
    /// panics, its job is dropped with everything it owns.
    pub async fn run_worker<H, F>(&self, handler: H, shutdown: impl Future<Output = ()>) -> Vec<J>
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
        tokio::join!(run_jobs(&self.backend, guarded, &self.name, &stop), stopping);
        self.backend.close()
    }
}
