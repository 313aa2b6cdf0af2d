//! The apalis backend: passes jobs from a channel to the apalis worker. It opens no connection and has no error, so a
//! failing store can't end the worker.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use apalis_core::backend::finalize::Ephemeral;
use apalis_core::backend::{Backend, BackendConfig};
use apalis_core::task::builder::TaskBuilder;
use apalis_core::task::task_id::TaskId;
use apalis_core::worker::context::WorkerContext;
use tokio::sync::mpsc;
use tower::layer::util::Identity;

/// A job with its id, on its way to the worker.
pub(crate) type DeliveredJob<J> = (String, J);

/// Jobs that no worker has started yet. Clones share one receiver: apalis drops the backend of a worker that
/// ended, and the next worker must receive the remaining jobs.
pub(crate) struct ChannelBackend<J>(Arc<Mutex<mpsc::UnboundedReceiver<DeliveredJob<J>>>>);

impl<J> Clone for ChannelBackend<J> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<J> ChannelBackend<J> {
    pub(crate) fn new(receiver: mpsc::UnboundedReceiver<DeliveredJob<J>>) -> Self {
        Self(Arc::new(Mutex::new(receiver)))
    }

    /// Closes the channel and returns the jobs that were never started.
    pub(crate) fn close(&self) -> Vec<J> {
        let mut receiver = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        receiver.close();
        std::iter::from_fn(|| receiver.try_recv().ok()).map(|(_, job)| job).collect()
    }
}

impl<J: Send + 'static> Backend for ChannelBackend<J> {
    type Task = apalis_core::task::Task<J>;
    type Error = Infallible;

    fn poll_ready(&mut self, _: &mut Context<'_>, _: &WorkerContext) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
        _: &WorkerContext,
    ) -> Poll<Option<Result<Self::Task, Infallible>>> {
        let mut receiver = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        receiver.poll_recv(cx).map(|delivered| {
            let (id, job) = delivered?;
            Some(Ok(TaskBuilder::new(job).task_id(TaskId::from_string(id)).build()))
        })
    }

    fn poll_close(&mut self, _: &mut Context<'_>, _: &WorkerContext) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }
}

impl<J: Send + 'static> BackendConfig for ChannelBackend<J> {
    type Args = J;
    type Id = String;
    type Kind = Ephemeral;
    type Config = ();
    type Layer = Identity;

    fn config(&self) -> &() {
        &()
    }

    fn middleware(&mut self, _: &mut WorkerContext) -> Identity {
        Identity::new()
    }
}
