//! Replays runs: a new run of the current definition with the trigger of an earlier one. The specification shows no
//! endpoint for it; this is an extension.

use automation::concurrency::RunConcurrency;
use automation::definition::{AutomationDefinition, Step};
use axum::extract::State;
use contract::Signal;
use domain::FieldError;
use http::HeaderMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::automations::{
    InsertedRun, NewRun, OverLimit, copy_steps, find_incomplete_step, insert_runs, lock_replayed_run,
    set_source_hashes,
};
use store::monthly_usage::find_monthly_usage;
use uuid::Uuid;
use web::{Code, OptionalJson, Path, Problem, Reply};

use super::definition::CheckedDefinition;
use super::depth::read_depth;
use super::permissions::{check_replayed, check_resources, check_slug_restrictions};
use super::run_views::AutomationRunStatus;
use super::runs::find_visible;
use crate::App;
use crate::automations::evaluate_concurrency;
use crate::call::{Call, scope};

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ReplayRunRequest {
    /// Id of a step outside branches and loops: the steps before it keep the output that they had, unless they failed.
    /// Default: all steps are executed again.
    from_step: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReplayedRunView {
    /// Id of the new run.
    run_id: Uuid,
    /// Status of the new run.
    status: AutomationRunStatus,
}

pub(super) async fn replay(
    call: Call<scope::AutomationsUpdate>,
    State(app): State<App>,
    Path((id, run_id)): Path<(Uuid, Uuid)>,
    headers: HeaderMap,
    OptionalJson(request): OptionalJson<ReplayRunRequest>,
) -> Result<Reply<ReplayedRunView>, Problem> {
    let depth = read_depth(&headers)?;
    let from_step = request.unwrap_or_default().from_step;
    let mut tx = store::begin(&app.db).await?;
    let (automation, run) = find_visible(&call, &mut tx, id, run_id).await?;
    if !run.status.is_ended() {
        let problem = Problem::new(Code::Conflict, "this run has not ended, so it can't be replayed yet");
        return Err(problem.hint("cancel it: POST /api/automations/{id}/runs/{runId}/cancel"));
    }
    if !automation.is_enabled && !run.is_test {
        let problem = Problem::new(Code::Conflict, "this automation is disabled, so it starts no runs");
        return Err(problem.hint("enable it: PUT /api/automations/{id} with {\"enabled\": true}"));
    }
    if !lock_replayed_run(&mut tx, call.account_id, run_id).await? {
        return Err(Problem::not_found("run"));
    }
    let checked = CheckedDefinition::stored(&automation.definition)?;
    let definition = &checked.definition;
    check_resources(&call, &mut tx, definition).await?;
    check_slug_restrictions(&call, &automation.authority, definition)?;
    let kept = match from_step {
        None => Vec::new(),
        Some(step) => steps_before(definition, &step)?,
    };
    let hash = &checked.hash;
    let keeps_outputs = !kept.is_empty();
    let sources =
        check_replayed(&mut tx, call.account_id, &automation.authority, hash, &run, keeps_outputs).await?;
    if let Some(path) = find_incomplete_step(&mut tx, call.account_id, run_id, &kept).await? {
        let detail = format!(
            "the output of `{path}` is not stored whole: it holds a masked variable or is longer than 64 KB"
        );
        return Err(Problem::new(Code::Conflict, detail).hint("replay from that step or an earlier one"));
    }
    let concurrency = definition.concurrency.as_ref().map(RunConcurrency::new);
    let (concurrency, trigger) = evaluate_concurrency(concurrency, run.trigger).await?;
    let new = NewRun {
        id: app.rng.uuid_v7(call.now),
        automation_id: id,
        definition_hash: checked.hash.to_vec(),
        trigger_type: trigger_type(&run.trigger_type),
        concurrency,
        trigger,
        is_test: run.is_test,
        depth: run.depth.max(depth),
        submission_id: None,
        source_submission_id: run.source_submission_id,
        fire_at: None,
        traceparent: service::telemetry::traceparent(),
    };
    let limit = call.limits().automation_runs_per_month;
    let new_id = new.id;
    let inserted = insert_runs(&mut tx, call.account_id, call.now, limit, OverLimit::Refuse, &[new]).await?;
    match inserted.first() {
        Some(InsertedRun::Queued) => {}
        Some(InsertedRun::OverLimit) => {
            let used = find_monthly_usage(&mut tx, call.account_id, call.now).await?.automation_runs;
            return Err(call.quota_exceeded("automation runs a month", limit, used, 1));
        }
        Some(InsertedRun::Absent) | None => return Err(Problem::not_found("automation")),
    }
    if !sources.is_empty() {
        set_source_hashes(&mut tx, call.account_id, new_id, &sources).await?;
    }
    if keeps_outputs {
        copy_steps(&mut tx, call.account_id, run_id, new_id, &kept, call.now).await?;
    }
    call.commit_and_send(&app, tx, vec![Signal::RunsDue { account_ids: vec![call.account_id] }]).await?;
    Ok(call.reply(ReplayedRunView { run_id: new_id, status: AutomationRunStatus::Queued }))
}

/// Returns the ids of all steps before a top-level step, including those in branches and loops.
fn steps_before(definition: &AutomationDefinition, step: &str) -> Result<Vec<String>, Problem> {
    let at = definition.steps.iter().position(|one| one.options.id == step).ok_or_else(|| {
        let message = "fromStep must be the id of a step outside branches and loops";
        Problem::validation(vec![FieldError::new("fromStep", "unknown_step", message)])
    })?;
    let mut ids = Vec::new();
    for step in definition.steps.iter().take(at) {
        collect_ids(step, &mut ids);
    }
    Ok(ids)
}

fn collect_ids(step: &Step, ids: &mut Vec<String>) {
    ids.push(step.options.id.clone());
    for (_, nested) in step.nested() {
        nested.iter().for_each(|step| collect_ids(step, ids));
    }
}

fn trigger_type(stored: &str) -> &'static str {
    ["form_submission", "http", "schedule"].into_iter().find(|word| *word == stored).unwrap_or("test")
}
