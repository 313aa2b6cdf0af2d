//! Requests that wait for the answer of their run.
//!
//! One task looks for the answers of all of them: at once for the runs of a signal on the bus, and for all at a fixed
//! interval, because signals may be lost. It runs only while requests wait.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cache::{Bus, BusEvent};
use contract::Signal;
use futures::{FutureExt as _, StreamExt as _};
use serde_json::Value;
use store::automations::{RunStatus, find_answered};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// Most requests that wait at once: each holds a connection.
const WAITING_MAX: usize = 4_096;
/// Maximum number of waiting requests of one account, so that one account can't use up the total.
const ACCOUNT_WAITING_MAX: usize = 256;
/// The task ends after this time without requests, and with it its subscription.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// A run that has an answer or has ended.
#[derive(Debug)]
pub(crate) struct AnsweredRun {
    pub(crate) status: RunStatus,
    /// `{status, headers, body}`; `None` if it ended without an answer.
    pub(crate) response: Option<Value>,
}

/// The requests that wait for a run. Clones share them.
#[derive(Clone)]
pub struct RunWaiters {
    db: store::Db,
    bus: Bus<Signal>,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// By run.
    waiting: HashMap<Uuid, Waiting>,
    /// Number of those of each account.
    by_account: HashMap<Uuid, usize>,
    is_watched: bool,
    /// Since shutdown, no request waits.
    is_closed: bool,
}

struct Waiting {
    account_id: Uuid,
    request: oneshot::Sender<AnsweredRun>,
}

impl State {
    /// Counts a request, unless too many wait.
    fn insert(&mut self, account_id: Uuid, run_id: Uuid) -> Option<oneshot::Receiver<AnsweredRun>> {
        let of_account = self.by_account.get(&account_id).copied().unwrap_or_default();
        if self.is_closed || self.waiting.len() >= WAITING_MAX || of_account >= ACCOUNT_WAITING_MAX {
            return None;
        }
        let (request, answer) = oneshot::channel();
        self.waiting.insert(run_id, Waiting { account_id, request });
        self.by_account.insert(account_id, of_account + 1);
        Some(answer)
    }

    /// Ends the wait for a run, if a request still waits for it.
    fn remove(&mut self, run_id: Uuid) -> Option<oneshot::Sender<AnsweredRun>> {
        let Waiting { account_id, request } = self.waiting.remove(&run_id)?;
        if let Entry::Occupied(mut of_account) = self.by_account.entry(account_id) {
            *of_account.get_mut() -= 1;
            if *of_account.get() == 0 {
                of_account.remove();
            }
        }
        Some(request)
    }
}

/// A request that waits. Dropping it ends the wait.
pub(crate) struct RunWaiter {
    run_id: Uuid,
    state: Arc<Mutex<State>>,
    answer: oneshot::Receiver<AnsweredRun>,
}

impl RunWaiters {
    /// Reads answers from `db`, and listens for signals on `bus`.
    pub fn new(db: store::Db, bus: Bus<Signal>) -> Self {
        Self { db, bus, state: Arc::default() }
    }

    /// Begins to wait for a run, before it is inserted, so that no signal is missed. `None` if too many requests wait, in
    /// all or at the account, and since shutdown.
    pub(crate) fn register(&self, account_id: Uuid, run_id: Uuid) -> Option<RunWaiter> {
        let mut state = lock(&self.state);
        let answer = state.insert(account_id, run_id)?;
        if !std::mem::replace(&mut state.is_watched, true) {
            tokio::spawn(self.clone().watch());
        }
        drop(state);
        Some(RunWaiter { run_id, state: Arc::clone(&self.state), answer })
    }

    /// Ends all waits at shutdown: their requests are answered as after the timeout.
    pub async fn close_at(self, end: impl Future<Output = ()>) -> anyhow::Result<()> {
        end.await;
        let mut state = lock(&self.state);
        state.is_closed = true;
        state.waiting.clear();
        state.by_account.clear();
        Ok(())
    }

    /// Looks for answers until no request has waited for a while.
    async fn watch(self) {
        let mut events = pin!(self.bus.subscribe());
        let mut ticks = service::ticks_after(POLL_INTERVAL, POLL_INTERVAL);
        let mut last_used = Instant::now();
        loop {
            let run_ids = tokio::select! {
                Some(event) = events.next() => {
                    let mut run_ids = self.signalled(event);
                    while let Some(Some(event)) = events.next().now_or_never() {
                        run_ids.extend(self.signalled(event));
                    }
                    run_ids
                }
                _ = ticks.tick() => {
                    let mut state = lock(&self.state);
                    if !state.waiting.is_empty() {
                        last_used = Instant::now();
                    } else if last_used.elapsed() >= IDLE_TIMEOUT {
                        state.is_watched = false;
                        return;
                    }
                    state.waiting.keys().copied().collect()
                }
            };
            if !run_ids.is_empty() {
                self.look_up(&run_ids).await;
            }
        }
    }

    /// Returns the runs of a signal that a request here waits for.
    fn signalled(&self, event: BusEvent<Signal>) -> Vec<Uuid> {
        let BusEvent::Message(Signal::RunsAnswered { run_ids }) = event else { return Vec::new() };
        let state = lock(&self.state);
        run_ids.into_iter().filter(|run_id| state.waiting.contains_key(run_id)).collect()
    }

    async fn look_up(&self, run_ids: &[Uuid]) {
        let found = async {
            let mut conn = store::acquire(&self.db).await?;
            find_answered(&mut conn, run_ids).await
        };
        match found.await {
            Ok(answered) => {
                let mut state = lock(&self.state);
                for (run_id, status, response) in answered {
                    if let Some(request) = state.remove(run_id) {
                        // The receiver is gone if the client has disconnected.
                        let _disconnected = request.send(AnsweredRun { status, response });
                    }
                }
            }
            Err(error) => tracing::debug!(%error, "answers of runs are left to the next poll"),
        }
    }
}

impl RunWaiter {
    /// Returns the run once it has an answer or has ended; `None` after the deadline, or at shutdown.
    pub(crate) async fn wait_until(mut self, deadline: Instant) -> Option<AnsweredRun> {
        timeout_at(deadline, &mut self.answer).await.ok()?.ok()
    }
}

impl Drop for RunWaiter {
    fn drop(&mut self) {
        lock(&self.state).remove(self.run_id);
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_account_can_not_take_all_waits() {
        let mut state = State::default();
        let (flooded, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let run = |at: usize| Uuid::from_u128(100 + at as u128);
        let waits = (0..WAITING_MAX).filter(|at| state.insert(flooded, run(*at)).is_some()).count();
        assert_eq!(waits, ACCOUNT_WAITING_MAX);
        assert!(state.insert(other, run(WAITING_MAX)).is_some());
        assert!(state.remove(run(0)).is_some() && state.remove(run(0)).is_none());
        assert!(state.insert(flooded, run(0)).is_some() && state.insert(flooded, run(300)).is_none());
        for at in 0..=WAITING_MAX {
            state.remove(run(at));
        }
        assert!(state.waiting.is_empty() && state.by_account.is_empty());
    }

    #[test]
    fn all_accounts_together_are_bounded() {
        let mut state = State::default();
        let mut insert =
            |at: usize| state.insert(Uuid::from_u128(at as u128 / 100), Uuid::from_u128(at as u128));
        assert!((0..WAITING_MAX).all(|at| insert(at).is_some()));
        assert!(insert(WAITING_MAX).is_none());
    }
}
