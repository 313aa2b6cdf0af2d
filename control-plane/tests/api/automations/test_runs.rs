//! Tests of automations: real runs that are not counted.

use domain::plans::Plan;
use http::Method;
use sandbox::test::until;
use serde_json::{Value, json};
use store::automations::RunResult;

use super::fixture::{Owner, http, step, with};

#[tokio::test]
async fn a_test_returns_the_status_and_each_step_and_moves_no_counter() {
    let owner = Owner::on(Plan::Free, &["automations.test_timeout=60s"]).await;
    let (path, _) = owner.automation(with(http(), "enabled", json!(false))).await;
    let limit = Plan::Free.limits().automation_runs_per_month;
    let full = format!(
        "insert into monthly_usage (account_id, month, automation_runs)
         values ('{}', date_trunc('month', now() at time zone 'utc')::date, {limit})",
        owner.account_id
    );
    owner.api.execute(&full).await.unwrap();
    let test = format!("{path}/test");
    let worker = async {
        let run = owner.claim_one().await;
        assert_eq!(run.trigger, json!({"payload": {"a": 1}, "query": {}, "method": "POST", "headers": {}}));
        assert!(run.is_test && run.trigger_type == "test");
        owner.store_steps(run.claim, vec![step("end", "stop", json!({"status": "success"}))]).await;
        owner.end(run.claim, RunResult::Success { message: Some("done".to_owned()) }).await;
    };
    let (tested, ()) = tokio::join!(owner.ok(Method::POST, &test, json!({"triggerData": {"a": 1}})), worker);
    assert_eq!((&tested["status"], &tested["message"]), (&json!("success"), &json!("done")));
    assert_eq!((&tested["isTest"], &tested["steps"][0]["path"]), (&json!(true), &json!("end")));
    assert_eq!(owner.get(&path).await["statistics"]["runs"], 0);
    assert_eq!(owner.column("select automation_runs::text from monthly_usage").await, limit.to_string());
    assert_eq!(owner.get(&format!("{path}/logs")).await["logs"][0]["isTest"], true);
}

#[tokio::test]
async fn a_test_that_takes_longer_returns_the_steps_so_far() {
    let owner = Owner::new(&["automations.test_timeout=1ms"]).await;
    let (path, _) = owner.automation(http()).await;
    for body in [json!({}), Value::Null, json!({"triggerData": {"payload": [1], "query": {"a": "b"}}})] {
        let tested = owner.ok(Method::POST, &format!("{path}/test"), body).await;
        assert_eq!((&tested["status"], &tested["steps"]), (&json!("queued"), &json!([])));
    }
    let triggers: Vec<Value> = owner.claim().await.into_iter().map(|run| run.trigger).collect();
    assert!(
        triggers.contains(&json!({"payload": [1], "query": {"a": "b"}, "method": "POST", "headers": {}}))
    );
    let wrong = owner.refused(Method::POST, &format!("{path}/test"), json!({"triggerData": [1]})).await;
    assert_eq!((wrong.0, wrong.2[0].0.as_str()), (400, "triggerData"));
}

#[tokio::test]
async fn a_test_does_not_wait_for_a_run_that_waits_longer() {
    let owner = Owner::new(&["automations.test_timeout=60s"]).await;
    let (path, _) = owner.automation(http()).await;
    let worker = async {
        let run = owner.claim_one().await;
        let until = service::Clock::system().now() + chrono::TimeDelta::hours(1);
        owner.end(run.claim, RunResult::Waiting { until, resume: None }).await;
    };
    let test = format!("{path}/test");
    let (tested, ()) = tokio::join!(owner.ok(Method::POST, &test, json!({})), worker);
    assert_eq!(tested["status"], "waiting");
}

#[tokio::test]
async fn an_account_runs_at_most_two_tests_at_once() {
    let owner = Owner::new(&["automations.test_timeout=60s"]).await;
    let (path, _) = owner.automation(http()).await;
    let test = format!("{path}/test");
    let send = async || owner.call(Method::POST, &test, json!({})).await;
    let third = async {
        let queued = format!("{path}/logs?status=queued");
        until(async || owner.get(&queued).await["logs"].as_array().unwrap().len() == 2).await;
        let (status, problem) = send().await;
        assert_eq!((status.as_u16(), &problem["code"]), (429, &json!("rate_limited")));
        for run in owner.claim().await {
            owner.succeed(run.claim).await;
        }
    };
    let (first, second, ()) = tokio::join!(send(), send(), third);
    assert_eq!((first.0.as_u16(), second.0.as_u16()), (200, 200));
}

#[tokio::test]
async fn automations_that_test_or_replay_themselves_without_end_are_stopped() {
    let owner = Owner::new(&["automations.test_timeout=1ms"]).await;
    let (path, created) = owner.automation(http()).await;
    let run_id = owner.trigger(created["triggerUrl"].as_str().unwrap(), &json!({})).await.run_id();
    let run = owner.claim_one().await;
    owner.succeed(run.claim).await;
    let authorization = format!("Bearer {}", owner.key);
    for path in [format!("{path}/test"), format!("{path}/runs/{run_id}/replay")] {
        for (depth, status) in [("4", 200), ("5", 508), ("99", 508)] {
            let headers = [("authorization", authorization.as_str()), ("webruntime-depth", depth)];
            let response = owner.public(Method::POST, &path, &headers, "").await;
            assert_eq!(response.status, status, "{path} {depth}: {response:?}");
            assert!(status == 200 || response.json()["code"] == "loop_detected");
        }
        let run = owner.claim_one().await;
        assert_eq!(run.depth, 4, "{path}");
        owner.succeed(run.claim).await;
    }
}
