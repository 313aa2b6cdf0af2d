//! A submission that waits for its group commit. The waiting request and the writer agree on its state: once the request
//! has ended, the submission is never committed, and a request that ends before the commit says that nothing was stored.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use store::submissions::BatchSubmission;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};
use web::Problem;

/// Whether a submission was stored; `false` if its batch skipped it.
pub(super) type StoreResult = Result<bool, Problem>;

/// The request waits, and the submission may be abandoned.
const WAITING: u8 = 0;
/// The commit was begun, so its outcome is open.
const COMMITTING: u8 = 1;
/// The request has ended; the submission must not be stored.
const ABANDONED: u8 = 2;

/// A queued submission, on the writer's side.
pub(super) struct PendingSubmission {
    pub(super) submission: BatchSubmission,
    pub(super) waiter: Waiter,
    pub(super) queued_at: Instant,
}

/// The request of a queued submission, on the writer's side.
pub(super) struct Waiter {
    state: Arc<AtomicU8>,
    result: oneshot::Sender<StoreResult>,
}

/// The result of a queued submission, on the request's side. Dropping it abandons the submission.
pub(super) struct PendingResult {
    state: Arc<AtomicU8>,
    receiver: oneshot::Receiver<StoreResult>,
}

impl PendingSubmission {
    pub(super) fn new(submission: BatchSubmission) -> (Self, PendingResult) {
        let (result, receiver) = oneshot::channel();
        let state = Arc::<AtomicU8>::default();
        let waiter = Waiter { state: Arc::clone(&state), result };
        let pending = Self { submission, waiter, queued_at: Instant::now() };
        (pending, PendingResult { state, receiver })
    }
}

impl Waiter {
    /// Returns whether the request has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.state.load(Ordering::SeqCst) == ABANDONED || self.result.is_closed()
    }

    /// Begins the commit. Returns `false` if the request has ended.
    pub(super) fn begin_commit(&self) -> bool {
        !self.result.is_closed() && self.change(WAITING, COMMITTING)
    }

    /// Undoes [`Self::begin_commit`] after a rollback.
    pub(super) fn cancel_commit(&self) {
        self.change(COMMITTING, WAITING);
    }

    pub(super) fn send(self, result: StoreResult) {
        // The receiver is gone if the client has disconnected.
        let _disconnected = self.result.send(result);
    }

    fn change(&self, from: u8, to: u8) -> bool {
        self.state.compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }
}

impl PendingResult {
    /// Waits for the result until `deadline`. Then the submission is abandoned, unless it is being committed.
    pub(super) async fn wait_until(mut self, deadline: Instant) -> StoreResult {
        match timeout_at(deadline, &mut self.receiver).await {
            Ok(result) => result.unwrap_or_else(|_closed| Err(Problem::outcome_unknown())),
            Err(_elapsed) if self.abandon() => Err(Problem::nothing_changed()),
            Err(_elapsed) => Err(Problem::outcome_unknown()),
        }
    }

    /// Returns `false` if the submission is being committed.
    fn abandon(&self) -> bool {
        let abandoned = self.state.compare_exchange(WAITING, ABANDONED, Ordering::SeqCst, Ordering::SeqCst);
        abandoned.is_ok()
    }
}

impl Drop for PendingResult {
    fn drop(&mut self) {
        self.abandon();
    }
}
