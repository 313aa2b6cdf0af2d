//! The deadline of a submission: whatever Postgres does, the client is answered by then.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};
use web::Problem;

/// The time by which a submission must be stored.
#[derive(Clone, Copy)]
pub(super) struct Deadline(Instant);

impl Deadline {
    pub(super) fn after(timeout: Duration) -> Self {
        Self(Instant::now() + timeout)
    }

    pub(super) fn instant(self) -> Instant {
        self.0
    }

    pub(super) fn has_passed(self) -> bool {
        Instant::now() >= self.0
    }

    /// Awaits work that stores nothing.
    ///
    /// # Errors
    /// The work failed, or the deadline has passed.
    pub(super) async fn bound<T>(self, work: impl Future<Output = Result<T, Problem>>) -> Result<T, Problem> {
        timeout_at(self.0, work).await.unwrap_or_else(|_elapsed| Err(Problem::nothing_changed()))
    }
}
