//! Variables that can't be decrypted, as with a lost master key: runs can be cancelled, nothing that can't be masked is
//! shown, and new values replace the old.

use http::Method;
use serde_json::{Value, json};
use store::automations::RunResult;
use uuid::Uuid;

use super::fixture::{Owner, http, step, with};

const SECRET: &str = "s3cret-value";

/// An automation with a failed and a queued run that hold the value of a variable, and whose variables can't be decrypted.
async fn unreadable(owner: &Owner) -> (String, Uuid, Uuid) {
    let (path, created) = owner.automation(with(http(), "env", json!({"A": SECRET, "B": "b"}))).await;
    let url = created["triggerUrl"].as_str().unwrap();
    let failed = owner.trigger(url, &json!({"a": SECRET})).await.run_id();
    let run = owner.claim_one().await;
    let failure = store::automations::StepRow {
        error: Some(format!("refused {SECRET}")),
        ..step("call", "fetch", json!({"a": SECRET}))
    };
    owner.store_steps(run.claim, vec![failure]).await;
    let message = format!("refused {SECRET}");
    owner.end(run.claim, RunResult::Error { path: "call".to_owned(), message }).await;
    let queued = owner.trigger(url, &json!({"a": SECRET})).await.run_id();
    owner.api.execute("update automations set sealed_env = '\\x00' || sealed_env").await.unwrap();
    (path, failed, queued)
}

#[tokio::test]
async fn a_run_whose_variables_can_not_be_decrypted_can_be_cancelled() {
    let owner = Owner::new(&[]).await;
    let (path, _, queued) = unreadable(&owner).await;
    let cancelled = owner.ok(Method::POST, &format!("{path}/runs/{queued}/cancel"), Value::Null).await;
    assert_eq!(cancelled["status"], "cancelled");
    assert!(!cancelled.to_string().contains("s3cret"), "{cancelled}");
    let stored = format!("select status from automation_runs where id = '{queued}'");
    assert_eq!(owner.column(&stored).await, "cancelled");
}

#[tokio::test]
async fn runs_that_can_not_be_masked_are_shown_without_what_they_hold() {
    let owner = Owner::new(&["automations.test_timeout=1ms"]).await;
    let (path, failed, queued) = unreadable(&owner).await;
    let logs = owner.get(&format!("{path}/logs")).await;
    let single = owner.get(&format!("{path}/runs/{failed}")).await;
    let test = owner
        .ok(Method::POST, &format!("{path}/test"), json!({"triggerData": {"payload": {"a": SECRET}}}))
        .await;
    for shown in [&logs, &single, &test] {
        assert!(!shown.to_string().contains("s3cret"), "{shown}");
    }
    let runs = logs["logs"].as_array().unwrap();
    let ids: Vec<&str> = runs.iter().map(|run| run["runId"].as_str().unwrap()).collect();
    assert_eq!(ids, [queued.to_string(), failed.to_string()]);
    assert_eq!((&single["status"], &single["errorPath"]), (&json!("error"), &json!("call")));
    assert_eq!(single["trigger"], json!({"type": "http"}));
    let step = &single["steps"][0];
    assert_eq!(
        (&step["path"], &step["input"], &step["output"]),
        (&json!("call"), &Value::Null, &Value::Null)
    );
    for text in [&single["message"], &single["error"], &step["error"], &test["message"]] {
        assert!(text.as_str().unwrap().contains("can't be decrypted; save `env` again"), "{text}");
    }
    assert_eq!(runs[0]["error"], Value::Null);
}

#[tokio::test]
async fn variables_that_can_not_be_decrypted_are_replaced_by_new_values() {
    let owner = Owner::new(&[]).await;
    let (path, ..) = unreadable(&owner).await;
    let kept = json!({"env": {"A": "x-new-value", "B": null}});
    let (status, problem) = owner.call(Method::PUT, &path, kept).await;
    assert_eq!((status.as_u16(), &problem["code"]), (409, &json!("conflict")), "{problem}");
    // What keeps them without reading them works as before.
    owner.ok(Method::PUT, &path, json!({"name": "B", "enabled": false})).await;
    let updated = owner.ok(Method::PUT, &path, json!({"env": {"A": "x-new-value"}, "enabled": true})).await;
    assert_eq!(updated["envNames"], json!(["A"]));
    let logs = owner.get(&format!("{path}/logs")).await;
    assert_eq!(logs["logs"].as_array().unwrap().len(), 2);
}
