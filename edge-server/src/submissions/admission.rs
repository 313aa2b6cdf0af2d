//! Limits how many submissions wait for edits, for other submissions of the same form, or for slow patterns, and for how
//! long. Other submissions pass them.

use std::time::Duration;

use service::admission::{self, Permit, UNLIMITED};
use tokio::sync::{Semaphore, SemaphorePermit};
use uuid::Uuid;
use web::{Code, Problem};

/// Connections with which submissions may wait for edits of their forms. However long an edit takes, the other connections
/// remain for other forms.
const MAX_WAITING_FOR_EDITS: usize = 4;
/// Concurrent slow checks: a long text and a pattern with many states take up to a second.
const MAX_CHECKS: usize = 2;
/// Concurrent slow checks of one account.
const MAX_CHECKS_PER_ACCOUNT: usize = 1;

/// The admission limits of submissions.
pub(crate) struct Admission {
    queue_timeout: Duration,
    edits: Semaphore,
    /// By form, or by account for forms with files.
    transactions: admission::Admission<Uuid>,
    /// By account.
    checks: admission::Admission<Uuid>,
}

/// A permit to wait for an edit while holding a connection.
pub(super) struct EditPermit<'a>(#[expect(dead_code, reason = "released when dropped")] SemaphorePermit<'a>);

impl Admission {
    /// Waits for a permit for at most `queue_timeout`. Submissions of one form that wait for each other hold at most
    /// `max_connections_per_form` connections.
    pub(crate) fn new(queue_timeout: Duration, max_connections_per_form: usize) -> Self {
        Self {
            queue_timeout,
            edits: Semaphore::new(MAX_WAITING_FOR_EDITS),
            transactions: admission::Admission::new(UNLIMITED, max_connections_per_form, queue_timeout),
            checks: admission::Admission::new(MAX_CHECKS, MAX_CHECKS_PER_ACCOUNT, queue_timeout),
        }
    }

    /// Waits for a permit to wait for an edit.
    pub(super) async fn edit_permit(&self) -> Result<EditPermit<'_>, Problem> {
        let permit = tokio::time::timeout(self.queue_timeout, self.edits.acquire()).await;
        permit.ok().and_then(Result::ok).map(EditPermit).ok_or_else(form_is_being_edited)
    }

    /// Waits for a permit of a form or account with submissions that wait for each other while holding a connection.
    pub(super) async fn transaction_permit(&self, id: Uuid) -> Result<Permit<Uuid>, Problem> {
        let permit = self.transactions.acquire(id).await;
        permit.map_err(|_timeout| {
            unavailable("too many submissions of this form arrived at once; nothing was stored")
        })
    }

    /// Runs a slow check of an account on a blocking thread, so that other requests do not wait for it.
    pub(super) async fn run_blocking<T: Send + 'static>(
        &self,
        account_id: Uuid,
        check: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let permit = self.checks.acquire(account_id).await.map_err(|_timeout| {
            unavailable("the answers to this form take long to check, and others are being checked; nothing was stored")
        })?;
        let run = move || {
            // Held until the check ends, even if the client disconnects.
            let _permit = permit;
            check()
        };
        tokio::task::spawn_blocking(run).await.map_err(check_failed)
    }
}

/// Returns the problem after the queue timeout.
pub(super) fn form_is_being_edited() -> Problem {
    unavailable("this form is being edited right now; nothing was stored")
}

fn unavailable(detail: &'static str) -> Problem {
    Problem::new(Code::Unavailable, detail).retry_after(5)
}

fn check_failed(error: impl std::fmt::Display) -> Problem {
    tracing::error!(%error, "checking answers failed");
    Problem::new(Code::Internal, "this is our mistake, not yours; try again in a few seconds")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc::channel;

    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn slow_checks_of_one_account_wait_for_each_other_only_and_time_out() {
        let admission = Arc::new(Admission::new(Duration::from_millis(200), 1));
        let (one, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let (done, is_done) = channel::<()>();
        let (begun, has_begun) = tokio::sync::oneshot::channel();
        let slow = tokio::spawn({
            let admission = Arc::clone(&admission);
            async move {
                let check = move || {
                    begun.send(()).unwrap();
                    is_done.recv().unwrap();
                };
                admission.run_blocking(one, check).await.is_ok()
            }
        });
        has_begun.await.unwrap();
        let refused = admission.run_blocking(one, || ()).await.unwrap_err();
        assert_eq!(refused.status(), http::StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(admission.run_blocking(other, || 7).await.unwrap(), 7, "the other permit is free");
        done.send(()).unwrap();
        assert!(slow.await.unwrap());
        assert_eq!(admission.run_blocking(one, || 8).await.unwrap(), 8);
    }
}
