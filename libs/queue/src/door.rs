//! apalis's side of the door: a backend that hands its worker what was brought to it. It keeps no state, opens no
//! connection and knows no error, so nothing that happens to a store can end the worker.

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

use crate::Task;
use crate::lease::Lease;

/// A task with its lease, as apalis carries it to the handler.
pub(crate) struct Leased<J> {
    pub(crate) task: Task<J>,
    pub(crate) lease: Lease,
}

impl<J> Leased<J> {
    pub(crate) fn new(task: Task<J>, lease: Lease) -> Self {
        Self { task, lease }
    }
}

/// A job with its id, on its way to the worker.
pub(crate) type Brought<J> = (String, J);

/// What was brought and no worker has started. Shared, because apalis keeps the backend of a worker that
/// ended, and the next one must find what is left.
pub(crate) struct Door<J>(Arc<Mutex<mpsc::UnboundedReceiver<Brought<J>>>>);

impl<J> Clone for Door<J> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<J> Door<J> {
    pub(crate) fn new(brought: mpsc::UnboundedReceiver<Brought<J>>) -> Self {
        Self(Arc::new(Mutex::new(brought)))
    }

    /// Shuts the door and hands out what was never started.
    pub(crate) fn close(&self) -> Vec<J> {
        let mut brought = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        brought.close();
        std::iter::from_fn(|| brought.try_recv().ok()).map(|(_, job)| job).collect()
    }
}

impl<J: Send + 'static> Backend for Door<J> {
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
        let mut brought = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        brought.poll_recv(cx).map(|one| {
            let (id, job) = one?;
            Some(Ok(TaskBuilder::new(job).task_id(TaskId::from_string(id)).build()))
        })
    }

    fn poll_close(&mut self, _: &mut Context<'_>, _: &WorkerContext) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }
}

impl<J: Send + 'static> BackendConfig for Door<J> {
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
