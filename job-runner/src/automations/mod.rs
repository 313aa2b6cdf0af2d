//! Runs of automations: what starts them, and their walks.
//!
//! Runs are claimed in Postgres in batches, per account, and walked through apalis in this process. No run passes through
//! Redis; bus signals only start a claim earlier. A kill at any moment loses nothing: a claimed run is due again when its
//! lease expires, and its walk continues after the last step that was stored.

mod claiming;
mod completions;
mod definitions;
mod effects;
mod execution;
mod held_runs;
mod new_runs;
mod permits;
mod retention;
mod run_context;
mod run_effects;
mod schedules;
mod signals;
mod triggers;

use std::sync::Arc;
use std::time::Duration;

use claiming::Claimer;
use completions::CompletionWriter;
use definitions::Definitions;
use execution::{LoadedRun, Walker};
use held_runs::HeldRuns;
use new_runs::Announcer;
use permits::RunPermits;
use queue::InProcessQueue;
use service::admission::{Admission, UNLIMITED};
use service::{Rounds, Shutdown};
use store::automations::{Claim, release_runs};
use tokio::sync::mpsc;

pub(crate) use effects::{EntryWriter, FetchClient};
pub(crate) use held_runs::heartbeat;
pub(crate) use run_context::RunContext;

use crate::config::Automations;
use crate::due_ids::DueIds;
use crate::state::JobState;

/// How long walks may go on after a shutdown was requested. Those that take longer are released and continued by another
/// process. Shorter than the time that components may take to stop.
const WALKS_TIMEOUT: Duration = Duration::from_secs(12);

/// The loops of this module, watched for readiness.
pub(crate) struct Watched {
    pub(crate) claims: Rounds,
    pub(crate) completions: Rounds,
    pub(crate) leases: Rounds,
    pub(crate) triggers: Rounds,
    pub(crate) schedules: Rounds,
    pub(crate) retention: Rounds,
}

pub(crate) async fn run(
    state: JobState,
    config: Automations,
    watched: Watched,
    shutdown: Shutdown,
) -> anyhow::Result<()> {
    let (signals, announced) = mpsc::unbounded_channel();
    let publishing = tokio::spawn(signals::run(state.clone(), announced));
    let (due_sender, due_accounts) = mpsc::unbounded_channel();
    let definitions = Arc::new(Definitions::default());
    let announcer = Announcer { due_accounts: due_sender.clone(), signals: signals.clone() };
    let poll = config.poll_interval;
    let triggers = triggers::run(
        state.clone(),
        poll,
        Arc::clone(&definitions),
        announcer.clone(),
        watched.triggers,
        shutdown.clone(),
    );
    let schedules = schedules::run(
        state.clone(),
        poll,
        Arc::clone(&definitions),
        announcer,
        watched.schedules,
        shutdown.clone(),
    );
    let retention =
        retention::run(state.clone(), config.cleanup_interval, watched.retention, shutdown.clone());
    let (writer, completions) = CompletionWriter::new(config.lease_ttl);
    let storing =
        tokio::spawn(completions::run(state.clone(), watched.completions, signals.clone(), completions));
    let held = HeldRuns::new(config.lease_ttl);
    let queue = InProcessQueue::new("runs");
    // Waits as long as the run is held.
    let heavy_walks = Admission::new(UNLIMITED, config.max_concurrent_heavy_per_account, Duration::MAX);
    let walker = Walker { state: state.clone(), writer, signals, heavy_walks, ended_limited: due_sender };
    let claimer = Claimer {
        permits: RunPermits::new(config.max_concurrent, config.max_concurrent_per_account),
        config,
        rounds: watched.claims,
        queue: queue.clone(),
        held: held.clone(),
        definitions,
        due_accounts,
        due: DueIds::default(),
        state: state.clone(),
    };
    let walking = walk_all(&state, claimer, walker, queue, &held, &watched.leases, &shutdown);
    let (released, triggers, schedules, retention) = tokio::join!(walking, triggers, schedules, retention);
    // The walker is gone, and with it the last sender.
    storing.await?;
    publishing.await?;
    if let Err(error) = released {
        tracing::warn!(%error, "releasing runs failed; they are claimed again when their leases expire");
    }
    triggers.and(schedules).and(retention)
}

/// Claims and walks runs until shutdown, then waits for the walks that have begun. Runs that did not end are released.
async fn walk_all(
    state: &JobState,
    mut claimer: Claimer,
    walker: Walker,
    queue: InProcessQueue<LoadedRun>,
    held: &HeldRuns,
    leases: &Rounds,
    shutdown: &Shutdown,
) -> Result<(), store::Error> {
    let handler = move |loaded| walker.clone().execute(loaded);
    let working = async {
        let ((), unstarted) =
            tokio::join!(claimer.run(shutdown), queue.run_worker(handler, shutdown.requested()));
        unstarted
    };
    let stopping = async {
        shutdown.requested().await;
        pause(WALKS_TIMEOUT).await;
        held.stop_all();
        std::future::pending::<()>().await;
    };
    let mut interrupted = Vec::new();
    let keeping = held.keep(state, leases);
    tokio::select! {
        unstarted = working => interrupted = unstarted,
        () = stopping => {}
        () = keeping => {}
    }
    let mut claims: Vec<Claim> = interrupted.iter().map(|loaded| loaded.held.claim).collect();
    claims.extend(held.interrupted());
    if claims.is_empty() {
        return Ok(());
    }
    let mut conn = store::acquire(&state.automations_db).await?;
    release_runs(&mut conn, &claims, state.clock.now()).await
}

#[expect(clippy::disallowed_methods, reason = "walks may go on for this long after a shutdown was requested")]
async fn pause(time: Duration) {
    tokio::time::sleep(time).await;
}
