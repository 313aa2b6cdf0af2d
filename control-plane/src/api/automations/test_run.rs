//! Tests an automation: its real steps run at once, and the response shows what each did. Test runs are not counted.

use std::time::Duration;

use automation::concurrency::RunConcurrency;
use automation::definition::Trigger;
use axum::extract::State;
use chrono::{DateTime, TimeDelta, Utc};
use contract::Signal;
use domain::scopes::Resource;
use http::HeaderMap;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use service::admission::Permit;
use store::automations::{InsertedRun, NewRun, OverLimit, Run, RunStatus, find_run, insert_runs};
use tokio::time::Instant;
use uuid::Uuid;
use web::{Code, OptionalJson, Path, Problem, Reply};

use super::definition::CheckedDefinition;
use super::depth::read_depth;
use super::permissions::{check_resources, check_slug_restrictions};
use super::run_views::{AutomationRunView, masking, run_view, steps_of};
use super::views::find;
use crate::App;
use crate::automations::evaluate_concurrency;
use crate::call::{Call, scope};

/// How often to look for the end of the run.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct TestAutomationRequest {
    /// What expressions read as `trigger`. An object without `payload` is taken as the payload itself.
    #[serde(default)]
    trigger_data: Map<String, Value>,
}

pub(super) async fn test(
    call: Call<scope::AutomationsUpdate>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
    headers: HeaderMap,
    OptionalJson(request): OptionalJson<TestAutomationRequest>,
) -> Result<Reply<AutomationRunView>, Problem> {
    let depth = read_depth(&headers)?;
    let _permit = acquire(&app, call.account_id).await?;
    let mut tx = store::begin(&app.db).await?;
    call.check_id(&mut tx, Resource::Automations, id).await?;
    let automation = find(&call, &mut tx, id).await?;
    let checked = CheckedDefinition::stored(&automation.definition)?;
    let definition = &checked.definition;
    // The steps run with the permissions of the key that last saved them. A more restricted caller must not gain those.
    check_resources(&call, &mut tx, definition).await?;
    check_slug_restrictions(&call, &automation.authority, definition)?;
    let data = request.unwrap_or_default().trigger_data;
    let trigger = test_trigger(&definition.trigger, data, call.now);
    let concurrency = definition.concurrency.as_ref().map(RunConcurrency::new);
    let (concurrency, trigger) = evaluate_concurrency(concurrency, trigger).await?;
    let run_id = app.rng.uuid_v7(call.now);
    let new = NewRun {
        id: run_id,
        automation_id: id,
        definition_hash: checked.hash.to_vec(),
        trigger_type: "test",
        concurrency,
        trigger,
        is_test: true,
        depth,
        submission_id: None,
        source_submission_id: None,
        fire_at: None,
        traceparent: service::telemetry::traceparent(),
    };
    let inserted = insert_runs(&mut tx, call.account_id, call.now, 0, OverLimit::Refuse, &[new]).await?;
    if inserted != [InsertedRun::Queued] {
        return Err(Problem::not_found("automation"));
    }
    call.commit_and_send(&app, tx, vec![Signal::RunsDue { account_ids: vec![call.account_id] }]).await?;
    let run = wait(&app, call.account_id, id, run_id).await?;
    let mut conn = store::acquire(&app.db).await?;
    let steps = steps_of(&mut conn, call.account_id, run_id).await?;
    drop(conn);
    let view = run_view(run, steps, masking(&app, &automation).as_ref());
    Ok(call.reply(view))
}

/// Returns a permit of the account, or 429 at once if it has all of its own: a test that waited would hold one of the
/// account's calls.
async fn acquire(app: &App, account_id: Uuid) -> Result<Permit<Uuid>, Problem> {
    app.automation_tests.acquire_without_key_queue(account_id).await.map_err(|_rejected| {
        let max = app.automations.max_concurrent_tests;
        let detail = format!("an account can run at most {max} tests of automations at once");
        Problem::new(Code::RateLimited, detail).retry_after(app.automations.test_timeout.as_secs().max(1))
    })
}

/// Returns the run once it has ended or waits for longer than the timeout, or as it is after the timeout.
async fn wait(app: &App, account_id: Uuid, id: Uuid, run_id: Uuid) -> Result<Run, Problem> {
    let timeout = app.automations.test_timeout;
    let (deadline, ends_at) =
        (Instant::now() + timeout, app.clock.now() + TimeDelta::from_std(timeout).unwrap_or_default());
    let mut ticks = service::ticks(POLL_INTERVAL);
    loop {
        ticks.tick().await;
        let mut conn = store::acquire(&app.db).await?;
        let found = find_run(&mut conn, account_id, id, run_id).await?;
        drop(conn);
        let run = found.ok_or_else(|| Problem::not_found("automation"))?;
        let is_waiting =
            run.status == RunStatus::Waiting && run.due_at.is_some_and(|due_at| due_at > ends_at);
        if run.status.is_ended() || is_waiting || Instant::now() >= deadline {
            return Ok(run);
        }
    }
}

/// Returns what the trigger would hold, with the given members.
fn test_trigger(trigger: &Trigger, data: Map<String, Value>, now: DateTime<Utc>) -> Value {
    let mut value = match trigger {
        Trigger::FormSubmission(form) => json!({
            "payload": {}, "submissionId": null, "formId": form.form_id, "externalId": null, "createdAt": now,
        }),
        Trigger::Http(http) => {
            json!({"payload": null, "query": {}, "method": http.method.as_str(), "headers": {}})
        }
        Trigger::Schedule(_) => json!({"scheduledAt": now}),
    };
    let Value::Object(members) = &mut value else { return value };
    if matches!(trigger, Trigger::Schedule(_)) || data.contains_key("payload") {
        members.extend(data);
    } else if !data.is_empty() {
        members.insert("payload".to_owned(), Value::Object(data));
    }
    value
}

#[cfg(test)]
mod tests {
    use automation::definition::AutomationDefinition;

    use super::*;

    #[test]
    fn test_data_is_the_payload_or_the_whole_trigger() {
        let of = |trigger: Value, data: Value| {
            let steps = json!([{"id": "a", "type": "stop", "status": "success"}]);
            let definition =
                AutomationDefinition::read(&json!({"trigger": trigger, "steps": steps})).unwrap();
            let Value::Object(data) = data else { panic!("{data}") };
            test_trigger(&definition.trigger, data, DateTime::UNIX_EPOCH)
        };
        let http = json!({"type": "http"});
        let empty = json!({"payload": null, "query": {}, "method": "POST", "headers": {}});
        assert_eq!(of(http.clone(), json!({})), empty);
        assert_eq!(of(http.clone(), json!({"a": 1}))["payload"], json!({"a": 1}));
        let whole = of(http, json!({"payload": [1], "query": {"a": "b"}}));
        assert_eq!(whole, json!({"payload": [1], "query": {"a": "b"}, "method": "POST", "headers": {}}));
        let cron = json!({"type": "schedule", "cron": "0 7 * * *"});
        assert_eq!(of(cron, json!({"a": 1})), json!({"scheduledAt": "1970-01-01T00:00:00Z", "a": 1}));
    }
}
