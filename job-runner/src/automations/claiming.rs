//! Claims due runs as far as permits are available, many with one statement.

use std::collections::HashSet;
use std::time::Duration;

use cache::BusEvent;
use contract::Signal;
use futures::{FutureExt, StreamExt};
use queue::InProcessQueue;
use service::{Rounds, Shutdown, ticks};
use store::Conn;
use store::automations::{ClaimedRun, claim_runs, list_due_accounts, release_runs};
use tokio::sync::mpsc;
use uuid::Uuid;

use super::definitions::Definitions;
use super::execution::LoadedRun;
use super::held_runs::HeldRuns;
use super::permits::RunPermits;
use crate::config::Automations;
use crate::due_ids::{DueIds, DueSignal};
use crate::metrics;
use crate::state::JobState;

/// Claims due runs and gives them to the queue.
pub(super) struct Claimer {
    pub(super) state: JobState,
    pub(super) config: Automations,
    pub(super) rounds: Rounds,
    pub(super) queue: InProcessQueue<LoadedRun>,
    pub(super) permits: RunPermits,
    pub(super) held: HeldRuns,
    pub(super) definitions: std::sync::Arc<Definitions>,
    /// Accounts with runs that this process has inserted, or that can be claimed now that another one has ended.
    pub(super) due_accounts: mpsc::UnboundedReceiver<Uuid>,
    pub(super) due: DueIds,
}

/// When to claim again without a signal.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NextClaim {
    AtNextTick,
    WhenPermitsAvailable,
    Immediately,
}

impl Claimer {
    pub(super) async fn run(&mut self, shutdown: &Shutdown) {
        let mut events = std::pin::pin!(self.state.bus.subscribe());
        let mut ticks = ticks(self.config.poll_interval);
        let mut next = NextClaim::AtNextTick;
        loop {
            let mut signal = DueSignal::Some;
            tokio::select! {
                () = shutdown.requested() => return,
                _ = ticks.tick() => signal = DueSignal::Any,
                () = self.permits.wait_available(), if next == NextClaim::WhenPermitsAvailable => {}
                () = std::future::ready(()), if next == NextClaim::Immediately => {}
                Some(account_id) = self.due_accounts.recv() => {
                    self.due.enqueue(account_id);
                    while let Ok(account_id) = self.due_accounts.try_recv() {
                        self.due.enqueue(account_id);
                    }
                }
                Some(event) = events.next() => {
                    signal = receive(&mut self.due, event);
                    // A burst of signals causes one claim.
                    while let Some(Some(event)) = events.next().now_or_never() {
                        signal = signal.max(receive(&mut self.due, event));
                    }
                    if signal == DueSignal::None {
                        continue;
                    }
                }
            }
            let rounds = self.rounds.clone();
            match rounds.watch(self.claim_all(signal == DueSignal::Any)).await {
                Ok(has_queried) => {
                    next = self.next_claim();
                    if !has_queried {
                        continue;
                    }
                }
                Err(error) => {
                    tracing::warn!(error = format!("{error:#}"), "claiming due runs failed and is retried");
                    next = NextClaim::AtNextTick;
                }
            }
            let _shutdown_requested = shutdown.unless_requested(pause(self.config.batch_window)).await;
        }
    }

    fn next_claim(&self) -> NextClaim {
        if self.due.is_empty() {
            NextClaim::AtNextTick
        } else if self.permits.claim_limits(self.due.iter()).is_empty() {
            NextClaim::WhenPermitsAvailable
        } else {
            NextClaim::Immediately
        }
    }

    /// Claims due runs as far as permits are available; `polls` looks for all accounts with due runs first. Returns
    /// whether Postgres was queried.
    async fn claim_all(&mut self, polls: bool) -> anyhow::Result<bool> {
        let mut limits = self.permits.claim_limits(self.due.iter());
        if !polls && limits.is_empty() {
            return Ok(false);
        }
        let mut conn = store::acquire(&self.state.automations_db).await?;
        if polls {
            self.due.replace(list_due_accounts(&mut conn, self.state.clock.now()).await?);
            limits = self.permits.claim_limits(self.due.iter());
        }
        if limits.is_empty() {
            return Ok(true);
        }
        let now = self.state.clock.now();
        let runs =
            claim_runs(&mut conn, now, now + self.held.lease(), self.state.rng.uuid_v7(now), &limits).await?;
        let asked = limits.iter().map(|limit| (limit.account_id, limit.limit));
        self.due.record_claim(asked, runs.iter().map(|run| run.account_id));
        for run in runs.iter().filter(|run| !run.has_begun) {
            let waited = (now - run.due_at).to_std().unwrap_or_default();
            metrics::AUTOMATION_RUN_QUEUE_SECONDS.record(waited, &[]);
        }
        self.start(&mut conn, runs).await?;
        Ok(true)
    }

    /// Loads the definitions, and starts the walks. Runs for which that fails are due again at once.
    async fn start(&mut self, conn: &mut Conn, runs: Vec<ClaimedRun>) -> anyhow::Result<()> {
        let (mut limited, mut unstarted) = (HashSet::new(), Vec::new());
        for run in runs {
            let claim = run.claim;
            // Nearly always from memory.
            let version = match self.definitions.load(conn, run.account_id, &run.definition_hash).await {
                Ok(version) => version,
                Err(error) => {
                    tracing::warn!(%error, run.id = %claim.run_id, "loading the definition of a run failed; it is claimed again");
                    unstarted.push(claim);
                    continue;
                }
            };
            if version.as_ref().is_ok_and(|version| version.definition.concurrency.is_some()) {
                limited.insert(run.account_id);
            }
            let id = format!("run:{}:{}", run.claim.run_id, run.claim.lease_id);
            let (held, permit) = (self.held.hold(run.claim), self.permits.acquire(run.account_id));
            // Fails only during shutdown.
            if self.queue.start(id, LoadedRun { run, version, held, permit }).is_err() {
                unstarted.push(claim);
            }
        }
        // One statement claims at most one run of each concurrency key, so there may be more.
        limited.into_iter().for_each(|account_id| self.due.enqueue(account_id));
        if !unstarted.is_empty() {
            release_runs(conn, &unstarted, self.state.clock.now()).await?;
        }
        Ok(())
    }
}

fn receive(due: &mut DueIds, event: BusEvent<Signal>) -> DueSignal {
    match event {
        BusEvent::Message(Signal::RunsDue { account_ids }) => {
            account_ids.into_iter().for_each(|id| due.enqueue(id));
            DueSignal::Some
        }
        BusEvent::Lagged => DueSignal::Any,
        BusEvent::Message(_) | BusEvent::Disconnected => DueSignal::None,
    }
}

#[expect(clippy::disallowed_methods, reason = "due runs are batched meanwhile")]
async fn pause(time: Duration) {
    tokio::time::sleep(time).await;
}
