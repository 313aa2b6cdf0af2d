//! Those who wait: for edits of their forms, for others who submit the same form, or for patterns that have much to
//! read. Others pass them by, and nobody waits for long.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use uuid::Uuid;
use web::{Code, Problem};

use super::keyed_semaphore::{KeyedPermit, KeyedSemaphore};

/// Connections with which submissions wait for edits of their forms. However long an edit takes, and however many want
/// to submit meanwhile, the other connections are for the other forms.
const WAITING: usize = 4;

/// Checks at a time that may take long: a long text and a pattern with many states take up to a second.
const WORKING: usize = 2;
/// And those of one account's forms.
const WORKING_OF_ONE: usize = 1;

/// Where those line up who can't be served as the others are.
pub(crate) struct Admission {
    within: Duration,
    edited: Semaphore,
    /// By form.
    counted: Arc<KeyedSemaphore>,
    patterns: Arc<Semaphore>,
    /// By account.
    shares: Arc<KeyedSemaphore>,
}

/// One of those who may wait for an edit with a connection in hand.
pub(super) struct EditPermit<'a>(
    #[expect(dead_code, reason = "given back when dropped")] SemaphorePermit<'a>,
);

impl Admission {
    /// Nobody waits yet, nor ever for longer than `within`; of those who submit a form and wait for each other, so many
    /// hold a connection.
    pub(crate) fn new(within: Duration, connections_per_form: usize) -> Self {
        Self {
            within,
            edited: Semaphore::new(WAITING),
            counted: KeyedSemaphore::new(connections_per_form),
            patterns: Arc::new(Semaphore::new(WORKING)),
            shares: KeyedSemaphore::new(WORKING_OF_ONE),
        }
    }

    /// A turn to wait for an edit.
    ///
    /// # Errors
    /// A problem: there is none so soon.
    pub(super) async fn edited(&self) -> Result<EditPermit<'_>, Problem> {
        let turn = tokio::time::timeout(self.within, self.edited.acquire()).await;
        turn.ok().and_then(Result::ok).map(EditPermit).ok_or_else(being_edited)
    }

    /// A turn at a form whose submissions are counted one after the other, as they wait for each other with a connection
    /// in hand.
    ///
    /// # Errors
    /// A problem: there is none so soon.
    pub(super) async fn counted(&self, form_id: Uuid) -> Result<KeyedPermit, Problem> {
        let turn = tokio::time::timeout(self.within, self.counted.next(form_id)).await;
        turn.map_err(|_elapsed| busy("this form is being submitted by too many at once; nothing was stored"))
    }

    /// Does for an account what may take long, beside all that visitors wait for.
    ///
    /// # Errors
    /// A problem: others are at it for too long, or it broke off.
    pub(super) async fn work<T: Send + 'static>(
        &self,
        account_id: Uuid,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let turns = async {
            // First the account's own: of those who wait for a free place, few are of one account.
            let share = self.shares.next(account_id).await;
            (share, Arc::clone(&self.patterns).acquire_owned().await)
        };
        let turns = tokio::time::timeout(self.within, turns).await;
        let turns = turns.map_err(|_elapsed| {
            busy("the answers to this form take long to check, and others are being checked; nothing was stored")
        })?;
        let held = move || {
            // Until the work is done, though whoever asked for it has hung up.
            let _turns = turns;
            work()
        };
        tokio::task::spawn_blocking(held).await.map_err(broken_off)
    }
}

/// What those are told who have waited for long enough.
pub(super) fn being_edited() -> Problem {
    busy("this form is being edited right now; nothing was stored")
}

fn busy(detail: &'static str) -> Problem {
    Problem::new(Code::Unavailable, detail).retry_after(5)
}

fn broken_off(error: impl std::fmt::Display) -> Problem {
    tracing::error!(%error, "answers can't be checked");
    Problem::new(Code::Internal, "this is our mistake, not yours; try again in a few seconds")
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn an_account_whose_patterns_take_long_waits_for_itself_alone_and_not_for_long() {
        let lines = Arc::new(Admission::new(Duration::from_millis(200), 1));
        let (one, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let (done, is_done) = channel::<()>();
        let (begun, has_begun) = tokio::sync::oneshot::channel();
        let slow = tokio::spawn({
            let lines = Arc::clone(&lines);
            async move {
                let work = move || {
                    begun.send(()).unwrap();
                    is_done.recv().unwrap();
                };
                lines.work(one, work).await.is_ok()
            }
        });
        has_begun.await.unwrap();
        let refused = lines.work(one, || ()).await.unwrap_err();
        assert_eq!(refused.status(), http::StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(lines.work(other, || 7).await.unwrap(), 7, "the other place is for the others");
        done.send(()).unwrap();
        assert!(slow.await.unwrap());
        assert_eq!(lines.work(one, || 8).await.unwrap(), 8);
    }
}
