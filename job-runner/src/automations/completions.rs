//! Stores records and ends of runs in batches, each in one transaction. What arrives during one commit forms the next
//! batch.

use std::collections::HashMap;
use std::time::Duration;

use contract::Signal;
use domain::Transient as _;
use domain::automations::{FailureReaction, failure_reaction};
use service::Rounds;
use store::Conn;
use store::automations::{
    Claim, FailureStreak, HeldClaims, RunEnd, RunResult, StepRow, complete_runs, disable_automation,
    hold_runs, record_ended_runs, store_steps,
};
use store::mails::{Kind, insert_mail};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use uuid::Uuid;

use crate::metrics;
use crate::state::JobState;

const MAX_BATCH: usize = 512;
/// Size of the values of a batch, as JSON. A larger completion is stored alone.
const MAX_BATCH_BYTES: usize = 8 << 20;
/// Pause before runs are tried again that another transaction has locked, if nothing else arrives.
const BUSY_INTERVAL: Duration = Duration::from_millis(10);
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// Records of a run, and its end if it has ended, to be stored.
pub(super) struct Completion {
    pub(super) claim: Claim,
    pub(super) rows: Vec<StepRow>,
    pub(super) end: Option<RunEnd>,
    /// Whether a caller may wait for the run.
    pub(super) is_awaited: bool,
    /// Size of the rows, about.
    bytes: usize,
    stored: oneshot::Sender<bool>,
    /// When it is given up: the lease has expired or will soon, and another worker walks the run again.
    give_up_at: Instant,
}

/// Sends records and ends to the task that stores them. Clones send to the same task.
#[derive(Clone)]
pub(super) struct CompletionWriter {
    sender: mpsc::UnboundedSender<Completion>,
    /// Of a run: what is not stored by then is given up.
    lease: Duration,
}

impl CompletionWriter {
    pub(super) fn new(lease: Duration) -> (Self, mpsc::UnboundedReceiver<Completion>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        (Self { sender, lease }, receiver)
    }

    /// Waits until the records and the end are stored. Returns `false` if the run is no longer this worker's, or if they
    /// could not be stored.
    pub(super) async fn store(
        &self,
        claim: Claim,
        rows: Vec<StepRow>,
        end: Option<RunEnd>,
        is_awaited: bool,
    ) -> bool {
        let (stored, is_stored) = oneshot::channel();
        let give_up_at = Instant::now() + self.lease;
        let completion = Completion {
            claim,
            bytes: rows.iter().map(size).sum(),
            rows,
            end,
            is_awaited,
            stored,
            give_up_at,
        };
        self.sender.send(completion).is_ok() && is_stored.await.unwrap_or(false)
    }
}

/// Runs until every sender is dropped and everything received is stored or given up.
pub(super) async fn run(
    state: JobState,
    rounds: Rounds,
    signals: mpsc::UnboundedSender<Signal>,
    mut completions: mpsc::UnboundedReceiver<Completion>,
) {
    let mut queue = Vec::with_capacity(MAX_BATCH);
    loop {
        if queue.is_empty() && completions.recv_many(&mut queue, MAX_BATCH).await == 0 {
            return;
        }
        while queue.len() < MAX_BATCH
            && let Ok(completion) = completions.try_recv()
        {
            queue.push(completion);
        }
        drop_superseded(&mut queue);
        let batch = next_batch(&mut queue);
        let busy = rounds.watch(store_or_give_up(&state, &signals, batch)).await;
        if busy.is_empty() {
            continue;
        }
        // Tried again together with what has arrived meanwhile.
        let is_idle = queue.is_empty() && completions.is_empty();
        queue.extend(busy);
        if is_idle {
            pause(BUSY_INTERVAL).await;
        }
    }
}

/// Removes the first completions, as many as one transaction may store. They are sorted by runs, the order in which rows
/// are locked everywhere.
fn next_batch(queue: &mut Vec<Completion>) -> Vec<Completion> {
    let mut bytes = 0;
    let fits = queue.iter().take(MAX_BATCH).take_while(|one| {
        let is_first = bytes == 0;
        bytes += one.bytes.max(1);
        is_first || bytes <= MAX_BATCH_BYTES
    });
    let size = fits.count();
    let mut batch: Vec<_> = queue.drain(..size).collect();
    batch.sort_by_key(|one| one.claim.run_id);
    batch
}

/// If this process has claimed a run twice, the first claim is no longer valid: lease ids are UUIDv7, so the later one is
/// greater.
fn drop_superseded(queue: &mut Vec<Completion>) {
    let mut latest: HashMap<Uuid, Uuid> = HashMap::new();
    for one in &*queue {
        let lease = latest.entry(one.claim.run_id).or_default();
        *lease = one.claim.lease_id.max(*lease);
    }
    queue.retain(|one| latest.get(&one.claim.run_id) == Some(&one.claim.lease_id));
}

/// Stores a batch. Returns what could not be stored yet: another transaction has locked the run.
async fn store_or_give_up(
    state: &JobState,
    signals: &mpsc::UnboundedSender<Signal>,
    batch: Vec<Completion>,
) -> Vec<Completion> {
    let Some(give_up_at) = batch.iter().map(|one| one.give_up_at).max() else { return batch };
    let storing = tokio::time::timeout_at(give_up_at, store_batch(state, &batch));
    let claims = match storing.await {
        Ok(Ok(claims)) => claims,
        Ok(Err(error)) if batch.len() > 1 => {
            tracing::warn!(
                error = format!("{error:#}"),
                runs = batch.len(),
                "a batch of runs is stored one by one"
            );
            store_one_by_one(state, &batch).await
        }
        Ok(Err(error)) => fail(&batch[0], &error),
        Err(_elapsed) => {
            tracing::warn!(
                runs = batch.len(),
                "storing runs timed out; they are claimed again after their leases"
            );
            return Vec::new();
        }
    };
    let is_stored = |one: &Completion| claims.held.contains(&one.claim.run_id);
    let answered = batch.iter().filter(|one| one.is_awaited && has_ended(one) && is_stored(one));
    let run_ids: Vec<Uuid> = answered.map(|one| one.claim.run_id).collect();
    if !run_ids.is_empty() {
        let _publisher_ended = signals.send(Signal::RunsAnswered { run_ids });
    }
    let mut busy = Vec::new();
    for one in batch {
        let is_stored = claims.held.contains(&one.claim.run_id);
        if claims.busy.contains(&one.claim.run_id) && Instant::now() < one.give_up_at {
            busy.push(one);
            continue;
        }
        if let Some(end) = one.end.as_ref().filter(|_| is_stored) {
            count(&end.result);
        }
        let _walk_has_stopped = one.stored.send(is_stored);
    }
    busy
}

/// Stores all of them in one transaction and retries while Postgres is unavailable. Returns the runs whose completions
/// are stored, and those that another transaction has locked.
///
/// A batch that met another transaction, or took too long, is not tried again as a whole: one run of it would delay the
/// others each time.
async fn store_batch(state: &JobState, batch: &[Completion]) -> Result<HeldClaims, store::Error> {
    loop {
        match store_once(state, batch).await {
            Err(error) if error.is_statement_timeout() || error.is_row_conflict() => return Err(error),
            Err(error) if error.is_transient() => {
                tracing::warn!(%error, runs = batch.len(), "Postgres is unavailable; storing runs is retried");
                pause(RETRY_INTERVAL).await;
            }
            result => return result,
        }
    }
}

async fn store_once(state: &JobState, batch: &[Completion]) -> Result<HeldClaims, store::Error> {
    let mut tx = store::begin(&state.automations_db).await?;
    let mut claims: Vec<Claim> = batch.iter().map(|one| one.claim).collect();
    claims.dedup();
    let claims = hold_runs(&mut tx, &claims).await?;
    let held: Vec<&Completion> = batch.iter().filter(|one| claims.held.contains(&one.claim.run_id)).collect();
    if held.is_empty() {
        store::rollback(tx).await?;
        return Ok(claims);
    }
    store_steps(&mut tx, &last_of_each_path(&held)).await?;
    let ends: Vec<RunEnd> = held.iter().filter_map(|one| one.end.clone()).collect();
    if !ends.is_empty() {
        let completed = complete_runs(&mut tx, &ends).await?;
        for streak in record_ended_runs(&mut tx, &completed).await? {
            react(state, &mut tx, streak).await?;
        }
    }
    store::commit(tx).await?;
    Ok(claims)
}

/// One statement can't store two records of one path; the later one holds.
fn last_of_each_path(batch: &[&Completion]) -> Vec<(Claim, StepRow)> {
    let mut last: HashMap<(Uuid, &str), usize> = HashMap::new();
    let rows: Vec<_> = batch.iter().flat_map(|one| one.rows.iter().map(|row| (one.claim, row))).collect();
    for (at, (claim, row)) in rows.iter().enumerate() {
        last.insert((claim.run_id, &row.path), at);
    }
    let is_last =
        |at: usize, claim: &Claim, row: &StepRow| last.get(&(claim.run_id, row.path.as_str())) == Some(&at);
    let kept = rows.iter().enumerate().filter(|(at, (claim, row))| is_last(*at, claim, row));
    kept.map(|(_, (claim, row))| (*claim, (*row).clone())).collect()
}

fn size(row: &StepRow) -> usize {
    let sealed = row.sealed_output.as_ref().map_or(0, Vec::len);
    domain::json_bytes(&row.input) + domain::json_bytes(&row.output) + sealed
}

/// Mails the owner of an automation that fails, and disables it if it only fails.
async fn react(state: &JobState, conn: &mut Conn, streak: FailureStreak) -> Result<(), store::Error> {
    let FailureStreak { account_id, automation_id, before, after } = streak;
    let reaction = failure_reaction(before, after);
    let now = state.clock.now();
    if reaction == FailureReaction::Disable {
        disable_automation(conn, account_id, automation_id, now).await?;
        tracing::info!(automation.id = %automation_id, failures = after, "disabled an automation after consecutive failures");
    }
    if reaction != FailureReaction::None {
        insert_mail(conn, account_id, Kind::AutomationFailed, automation_id, now).await?;
    }
    Ok(())
}

/// Stores the completions of each run by themselves, so that an invalid one does not fail those of the others.
async fn store_one_by_one(state: &JobState, batch: &[Completion]) -> HeldClaims {
    let mut claims = HeldClaims::default();
    for of_run in batch.chunk_by(|one, next| one.claim == next.claim) {
        let give_up_at = of_run.iter().map(|one| one.give_up_at).max().unwrap_or_else(Instant::now);
        let run = match tokio::time::timeout_at(give_up_at, store_batch(state, of_run)).await {
            Ok(Ok(run)) => run,
            Ok(Err(error)) => fail(&of_run[0], &error),
            Err(_elapsed) => {
                tracing::warn!(run.id = %of_run[0].claim.run_id, "storing a run timed out");
                continue;
            }
        };
        claims.held.extend(run.held);
        claims.busy.extend(run.busy);
    }
    claims
}

/// Returns what follows from an error of one run: it is tried again if it met another transaction.
fn fail(one: &Completion, error: &store::Error) -> HeldClaims {
    let run_id = one.claim.run_id;
    let mut claims = HeldClaims::default();
    if error.is_row_conflict() {
        tracing::warn!(%error, run.id = %run_id, "storing a run met another transaction and is retried");
        claims.busy.insert(run_id);
    } else {
        tracing::error!(error = format!("{error:#}"), run.id = %run_id, "storing a run failed; it is claimed again after its lease");
    }
    claims
}

fn has_ended(one: &Completion) -> bool {
    one.end.as_ref().is_some_and(|end| !matches!(end.result, RunResult::Waiting { .. }))
}

fn count(result: &RunResult) {
    let status = match result {
        RunResult::Success { .. } => "success",
        RunResult::Error { .. } => "error",
        RunResult::Waiting { .. } => "waiting",
    };
    metrics::AUTOMATION_RUNS_COMPLETED.add(1, &[("status", status)]);
}

#[expect(clippy::disallowed_methods, reason = "the pause before a retry")]
async fn pause(time: Duration) {
    tokio::time::sleep(time).await;
}
