//! Runs that wait for their insertion, and the requests that wait for them.

use store::automations::{InsertedRun, NewRun};
use tokio::sync::oneshot;
use tokio::time::Instant;
use uuid::Uuid;
use web::Problem;

/// Approximate size of a run without its trigger.
const RUN_BYTES: usize = 1_024;

/// A run that a request asks for.
#[derive(Debug)]
pub(crate) struct RequestedRun {
    pub(crate) account_id: Uuid,
    /// The account's limit of runs per month; -1 for any number.
    pub(crate) runs_limit: i64,
    pub(crate) run: NewRun,
    /// Size of the run's trigger as JSON, about.
    pub(crate) bytes: usize,
}

/// What becomes of a requested run.
pub(super) type InsertResult = Result<InsertedRun, Problem>;

/// A queued run with its request.
pub(super) struct PendingRun {
    pub(super) requested: RequestedRun,
    pub(super) request: oneshot::Sender<InsertResult>,
    pub(super) queued_at: Instant,
    /// Inserted in a transaction of its own, because Postgres refused a batch with it.
    pub(super) is_alone: bool,
}

impl PendingRun {
    pub(super) fn new(requested: RequestedRun) -> (Self, oneshot::Receiver<InsertResult>) {
        let (request, result) = oneshot::channel();
        (Self { requested, request, queued_at: Instant::now(), is_alone: false }, result)
    }

    pub(super) fn bytes(&self) -> usize {
        self.requested.bytes + RUN_BYTES
    }

    pub(super) fn answer(self, result: InsertResult) {
        // The receiver is gone if the client has disconnected.
        let _disconnected = self.request.send(result);
    }
}
