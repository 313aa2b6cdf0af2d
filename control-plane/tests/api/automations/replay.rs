//! Replays of runs.

use domain::plans::Plan;
use http::Method;
use serde_json::{Value, json};
use store::automations::list_journal;
use uuid::Uuid;

use super::fixture::{Owner, http, step, stop, with};

fn fetch(id: &str) -> Value {
    json!({"id": id, "type": "fetch", "url": "https://a.test"})
}

/// An automation with steps before and after a loop.
fn definition() -> Value {
    let each = json!({"id": "each", "type": "for_each", "items": "{{ trigger.payload }}", "steps": [fetch("inner")]});
    let branch =
        json!({"id": "if", "type": "condition", "branches": [{"if": "true", "steps": [fetch("nested")]}]});
    with(http(), "steps", json!([fetch("first"), each, branch, fetch("last"), stop()]))
}

impl Owner {
    /// Executes a run with these steps and returns the path of the run.
    async fn executed(&self, path: &str, url: &str, steps: Vec<store::automations::StepRow>) -> String {
        let run_id = self.trigger(url, &json!([1, 2])).await.run_id();
        let run = self.claim_one().await;
        self.store_steps(run.claim, steps).await;
        self.succeed(run.claim).await;
        format!("{path}/runs/{run_id}")
    }
}

#[tokio::test]
async fn a_replay_has_the_same_trigger_and_the_current_definition() {
    let owner = Owner::new(&[]).await;
    let (path, created) = owner.automation(definition()).await;
    let url = created["triggerUrl"].as_str().unwrap();
    let run_id = owner.trigger(url, &json!({"a": 1})).await.run_id();
    let replay = format!("{path}/runs/{run_id}/replay");
    let refused = owner.refused(Method::POST, &replay, Value::Null).await;
    assert_eq!((refused.0, refused.1.as_str()), (409, "conflict"), "it is under way");
    let first = owner.claim_one().await;
    owner.succeed(first.claim).await;
    owner.ok(Method::PUT, &path, json!({"steps": [stop()]})).await;
    let replayed = owner.ok(Method::POST, &replay, Value::Null).await;
    let run = owner.claim_one().await;
    assert_eq!((&replayed["runId"], &replayed["status"]), (&json!(run.claim.run_id), &json!("queued")));
    assert_eq!((&run.trigger, run.trigger_type.as_str(), run.has_begun), (&first.trigger, "http", false));
    assert_ne!(run.definition_hash, first.definition_hash);
    owner.succeed(run.claim).await;
    owner.ok(Method::PUT, &path, json!({"enabled": false})).await;
    assert_eq!(owner.refused(Method::POST, &replay, Value::Null).await.0, 409);
}

#[tokio::test]
async fn a_replay_from_a_step_keeps_the_outputs_before_it() {
    let owner = Owner::new(&[]).await;
    let (path, created) = owner.automation(definition()).await;
    let url = created["triggerUrl"].as_str().unwrap();
    let failed = store::automations::StepRow { status: "error", ..step("each[1].inner", "fetch", json!({})) };
    let steps = vec![
        step("first", "fetch", json!({"status": 200})),
        step("each[0].inner", "fetch", json!({"status": 201})),
        failed,
        step("each", "for_each", json!({"count": 2})),
        step("if", "condition", json!({"branch": 0})),
        step("nested", "fetch", json!({"status": 202})),
        step("last", "fetch", json!({"status": 203})),
    ];
    let run = owner.executed(&path, url, steps).await;
    let from =
        async |step: &str| owner.ok(Method::POST, &format!("{run}/replay"), json!({"fromStep": step})).await;
    for (step, kept) in [
        ("first", vec![]),
        ("if", vec!["each[0].inner", "first"]),
        ("last", vec!["each[0].inner", "first", "if", "nested"]),
    ] {
        let run_id: Uuid = from(step).await["runId"].as_str().unwrap().parse().unwrap();
        let claimed = owner.claim_one().await;
        assert_eq!((claimed.claim.run_id, claimed.has_begun), (run_id, !kept.is_empty()), "{step}");
        let mut tx = owner.api.begin().await;
        let mut paths: Vec<String> =
            list_journal(&mut tx, &[run_id]).await.unwrap().into_iter().map(|row| row.path).collect();
        paths.sort();
        assert_eq!(paths, kept, "{step}: neither loops nor failed steps");
        owner.succeed(claimed.claim).await;
    }
    for wrong in ["nested", "inner", "nothing", ""] {
        let refused = owner.refused(Method::POST, &format!("{run}/replay"), json!({"fromStep": wrong})).await;
        assert_eq!(refused.2, [("fromStep".to_owned(), "unknown_step".to_owned())], "{wrong}");
    }
}

#[tokio::test]
async fn an_output_that_the_log_does_not_hold_whole_is_not_kept() {
    let owner = Owner::new(&[]).await;
    let (path, created) = owner.automation(definition()).await;
    let url = created["triggerUrl"].as_str().unwrap();
    let partial = step("first", "fetch", json!({"token": "***"}));
    let partial = store::automations::StepRow { sealed_output: Some(vec![1]), is_partial: true, ..partial };
    let run = owner.executed(&path, url, vec![partial]).await;
    let (status, problem) =
        owner.call(Method::POST, &format!("{run}/replay"), json!({"fromStep": "each"})).await;
    assert_eq!((status.as_u16(), &problem["code"]), (409, &json!("conflict")), "{problem}");
    assert!(problem["detail"].as_str().unwrap().contains("`first`"), "{problem}");
    owner.ok(Method::POST, &format!("{run}/replay"), json!({"fromStep": "first"})).await;
}

#[tokio::test]
async fn a_replay_keeps_also_the_outputs_that_a_response_has_no_space_for() {
    let owner = Owner::new(&[]).await;
    let (path, created) = owner.automation(definition()).await;
    let url = created["triggerUrl"].as_str().unwrap();
    let steps = (0..90).map(|at| step(&format!("each[{at}].inner"), "fetch", json!("x".repeat(65_000))));
    let run = owner.executed(&path, url, steps.collect()).await;
    assert_eq!(owner.get(&run).await["stepsTruncated"], json!(true));
    let replayed = owner.ok(Method::POST, &format!("{run}/replay"), json!({"fromStep": "if"})).await;
    let mut tx = owner.api.begin().await;
    let run_id = replayed["runId"].as_str().unwrap().parse().unwrap();
    assert_eq!(list_journal(&mut tx, &[run_id]).await.unwrap().len(), 90);
}

#[tokio::test]
async fn a_replay_counts_in_the_month() {
    let owner = Owner::on(Plan::Free, &[]).await;
    let (path, created) = owner.automation(http()).await;
    let run = owner.executed(&path, created["triggerUrl"].as_str().unwrap(), Vec::new()).await;
    let limit = Plan::Free.limits().automation_runs_per_month;
    owner.api.execute(&format!("update monthly_usage set automation_runs = {}", limit - 1)).await.unwrap();
    owner.ok(Method::POST, &format!("{run}/replay"), Value::Null).await;
    let over = owner.refused(Method::POST, &format!("{run}/replay"), Value::Null).await;
    assert_eq!((over.0, over.1.as_str()), (403, "quota_exceeded"));
}
