//! Those who wait: for edits of their forms, or for patterns that have much to read. Others pass them by.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use web::{Code, Problem};

/// Connections with which submissions wait for edits of their forms. However long an edit takes, and however many want
/// to submit meanwhile, the other connections are for the other forms.
const WAITING: usize = 4;

/// Checks at a time that may take long: a long text and a pattern with many states take up to a second.
const WORKING: usize = 2;

/// Where those line up who can't be served as the others are.
pub(crate) struct Lines {
    edited: Semaphore,
    patterns: Arc<Semaphore>,
}

/// One of those who may wait for an edit with a connection in hand.
pub(super) struct Turn<'a>(#[expect(dead_code, reason = "given back when dropped")] SemaphorePermit<'a>);

impl Lines {
    /// Nobody waits yet.
    pub(crate) fn new() -> Self {
        Self { edited: Semaphore::new(WAITING), patterns: Arc::new(Semaphore::new(WORKING)) }
    }

    /// A turn to wait.
    ///
    /// # Errors
    /// A problem: there is none so soon.
    pub(super) async fn turn(&self, within: Duration) -> Result<Turn<'_>, Problem> {
        let turn = tokio::time::timeout(within, self.edited.acquire()).await;
        turn.ok().and_then(Result::ok).map(Turn).ok_or_else(being_edited)
    }

    /// Does what may take long beside all that visitors wait for.
    ///
    /// # Errors
    /// A problem: it broke off.
    pub(super) async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Problem> {
        let turn = Arc::clone(&self.patterns).acquire_owned().await.map_err(broken_off)?;
        let held = move || {
            // Until the work is done, though whoever asked for it has hung up.
            let _turn = turn;
            work()
        };
        tokio::task::spawn_blocking(held).await.map_err(broken_off)
    }
}

/// What those are told who have waited for long enough.
pub(super) fn being_edited() -> Problem {
    Problem::new(Code::Unavailable, "this form is being edited right now; nothing was stored").retry_after(5)
}

fn broken_off(error: impl std::fmt::Display) -> Problem {
    tracing::error!(%error, "answers can't be checked");
    Problem::new(Code::Internal, "this is our mistake, not yours; try again in a few seconds")
}
