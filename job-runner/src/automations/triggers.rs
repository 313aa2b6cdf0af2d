//! Starts runs for submissions. The submission's transaction has left a row for each automation of its form; the run is
//! inserted in the transaction that deletes the row, so each submission starts one run, and its own 201 depends on none.

use std::sync::Arc;
use std::time::Duration;

use chrono::SecondsFormat;
use contract::Signal;
use domain::depth;
use serde_json::json;
use service::{Rounds, Shutdown};
use store::automations::{DueTrigger, NewRun, delete_triggers, lock_due_triggers};
use uuid::Uuid;

use super::definitions::Definitions;
use super::new_runs::{self, AccountRun, Announcer};
use crate::signalled_polls::SignalledPolls;
use crate::state::JobState;

/// Submissions of one transaction.
const BATCH: i64 = 512;

pub(super) async fn run(
    state: JobState,
    poll_interval: Duration,
    definitions: Arc<Definitions>,
    announcer: Announcer,
    rounds: Rounds,
    shutdown: Shutdown,
) -> anyhow::Result<()> {
    let mut polls = SignalledPolls::new(&state, poll_interval, Signal::TriggersDue);
    while polls.next(&shutdown).await.is_some() {
        let starting = rounds.watch(start_all(&state, &definitions, &announcer, &rounds));
        if let Some(Err(error)) = shutdown.unless_requested(starting).await {
            tracing::warn!(
                error = format!("{error:#}"),
                "starting the runs of submissions failed and is retried"
            );
        }
    }
    Ok(())
}

async fn start_all(
    state: &JobState,
    definitions: &Arc<Definitions>,
    announcer: &Announcer,
    rounds: &Rounds,
) -> anyhow::Result<()> {
    // A batch can be short although an account has more: it gets only its share.
    while start_batch(state, definitions, announcer).await? > 0 {
        rounds.progress();
    }
    Ok(())
}

/// Inserts the runs of a batch. Returns the number of its submissions; 0 means that none are left.
async fn start_batch(
    state: &JobState,
    definitions: &Arc<Definitions>,
    announcer: &Announcer,
) -> anyhow::Result<usize> {
    let mut tx = store::begin(&state.automations_db).await?;
    let due = lock_due_triggers(&mut tx, BATCH).await?;
    if due.is_empty() {
        // Those of deleted automations are deleted.
        store::commit(tx).await?;
        return Ok(0);
    }
    let ids: Vec<i64> = due.iter().map(|trigger| trigger.id).collect();
    let now = state.clock.now();
    let definitions = Arc::clone(definitions);
    // Runs with a concurrency limit begin in the order of their ids: it must be that of the submissions.
    let mut run_ids: Vec<Uuid> = due.iter().map(|_trigger| state.rng.uuid_v7(now)).collect();
    run_ids.sort_unstable();
    // Off the threads of the runtime, because the concurrency keys are evaluated.
    let preparing = move || {
        let all = due.into_iter().zip(run_ids);
        let started = all.filter(|(trigger, _)| trigger.is_enabled && !depth::is_loop(trigger.depth));
        started.map(|(trigger, id)| run_of(trigger, &definitions, id)).collect::<Vec<_>>()
    };
    let runs = tokio::task::spawn_blocking(preparing).await?;
    let accounts = new_runs::insert(&mut tx, now, runs).await?;
    delete_triggers(&mut tx, &ids).await?;
    store::commit(tx).await?;
    announcer.announce(accounts);
    Ok(ids.len())
}

fn run_of(due: DueTrigger, definitions: &Definitions, id: Uuid) -> AccountRun {
    let trigger = json!({
        "payload": due.payload,
        "submissionId": due.submission_id,
        "formId": due.form_id,
        "externalId": due.external_id,
        "createdAt": due.submitted_at.to_rfc3339_opts(SecondsFormat::Millis, true),
    });
    // A definition that can't be read is reported by the run itself.
    let version = definitions.read(due.account_id, &due.definition_hash, &due.definition).ok();
    let run = NewRun {
        id,
        automation_id: due.automation_id,
        definition_hash: due.definition_hash,
        trigger_type: "form_submission",
        concurrency: version.and_then(|version| version.concurrency(&trigger)),
        trigger,
        is_test: false,
        depth: due.depth,
        submission_id: Some(due.submission_id),
        source_submission_id: Some(due.submission_id),
        fire_at: None,
        traceparent: due.traceparent,
    };
    AccountRun { account_id: due.account_id, plan: due.plan, run }
}
