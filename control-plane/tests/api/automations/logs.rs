//! Logs, single runs, and their cancellation.

use chrono::TimeDelta;
use http::Method;
use serde_json::{Value, json};
use service::Clock;
use store::automations::{RunResult, StepRow};

use super::fixture::{Owner, http, step, with};

const SECRET: &str = "s3cret \"value\"";

#[tokio::test]
async fn a_log_has_each_step_and_no_value_of_a_variable() {
    let owner = Owner::new(&[]).await;
    let (path, created) =
        owner.automation(with(http(), "env", json!({"TOKEN": SECRET, "SHORT": "abc"}))).await;
    let url = created["triggerUrl"].as_str().unwrap();
    let payload = json!({"a": format!("x{SECRET}y"), "b": "abc", "type": "forged", SECRET: 1});
    let run_id = owner.trigger(url, &payload).await.run_id();
    let run = owner.claim_one().await;
    let failed = step("each[3].notify", "fetch", json!({"status": 500}));
    owner.store_steps(run.claim, vec![step("first", "set", json!({"a": 1})), failed]).await;
    let message = format!("refused {SECRET}");
    owner.end(run.claim, RunResult::Error { path: "each[3].notify".to_owned(), message }).await;

    let logs = owner.get(&format!("{path}/logs")).await;
    let log = &logs["logs"][0];
    assert!(!logs.to_string().contains("s3cret"), "{logs}");
    assert_eq!(log["trigger"]["payload"], json!({"a": "x***y", "b": "abc", "type": "forged", "***": 1}));
    assert_eq!((&log["trigger"]["type"], &log["trigger"]["method"]), (&json!("http"), &json!("POST")));
    assert_eq!(
        (&log["runId"], &log["status"], &log["isTest"]),
        (&json!(run_id), &json!("error"), &json!(false))
    );
    assert_eq!((&log["error"], &log["errorPath"]), (&json!("refused ***"), &json!("each[3].notify")));
    assert_eq!((&log["message"], &log["ms"].is_i64()), (&Value::Null, &true));
    let steps = log["steps"].as_array().unwrap();
    let paths: Vec<&str> = steps.iter().map(|step| step["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["each[3].notify", "first"]);
    let expected = json!({
        "path": "each[3].notify", "id": "notify", "type": "fetch", "status": "success",
        "input": {"of": "each[3].notify"}, "output": {"status": 500}, "error": null, "ms": 7, "attempts": 1,
    });
    let mut first = steps[0].clone();
    assert!(
        first.as_object_mut().unwrap().shift_remove("startedAt").is_some_and(|at| at.is_string()),
        "{first}"
    );
    assert_eq!(first, expected);
    let mut single = owner.get(&format!("{path}/runs/{run_id}")).await;
    single.as_object_mut().unwrap().remove("_meta");
    assert_eq!(single, *log);
    let statistics = owner.get(&path).await["statistics"].clone();
    assert_eq!((&statistics["runs"], &statistics["failures"]), (&json!(1), &json!(1)));
    assert!(statistics["p50Ms"].is_f64() && statistics["p95Ms"].is_f64(), "{statistics}");
}

#[tokio::test]
async fn logs_are_filtered_by_status_and_paginated_newest_first() {
    let owner = Owner::new(&[]).await;
    let (path, created) = owner.automation(http()).await;
    let url = created["triggerUrl"].as_str().unwrap();
    let mut ids = Vec::new();
    for at in 0..5 {
        let run_id = owner.trigger(url, &json!(at)).await.run_id();
        let run = owner.claim_one().await;
        let failed = RunResult::Error { path: String::new(), message: "m".to_owned() };
        let result =
            if at % 2 == 0 { failed } else { RunResult::Success { message: Some("done".to_owned()) } };
        owner.end(run.claim, result).await;
        ids.insert(0, run_id.to_string());
    }
    let listed = |page: &Value| -> Vec<String> {
        page["logs"].as_array().unwrap().iter().map(|log| log["runId"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(listed(&owner.get(&format!("{path}/logs")).await), ids);
    let failed = owner.get(&format!("{path}/logs?status=error")).await;
    assert_eq!(listed(&failed), [&ids[0], &ids[2], &ids[4]].map(String::clone));
    assert_eq!(failed["logs"][0]["errorPath"], Value::Null);
    assert_eq!(owner.get(&format!("{path}/logs?status=success")).await["logs"][0]["message"], "done");
    let first = owner.get(&format!("{path}/logs?limit=2")).await;
    assert_eq!((listed(&first), &first["hasMore"]), (ids[..2].to_vec(), &json!(true)));
    let next = first["nextCursor"].as_str().unwrap();
    let second = owner.get(&format!("{path}/logs?limit=3&cursor={next}")).await;
    assert_eq!((listed(&second), &second["hasMore"]), (ids[2..].to_vec(), &json!(false)));
    let wrong = owner.refused(Method::GET, &format!("{path}/logs?status=failed"), Value::Null).await;
    assert_eq!((wrong.0, wrong.2[0].0.as_str()), (400, "status"));
}

#[tokio::test]
async fn a_page_of_logs_ends_before_its_steps_are_too_large() {
    let owner = Owner::new(&[]).await;
    let (path, created) = owner.automation(http()).await;
    let url = created["triggerUrl"].as_str().unwrap();
    for at in 0..4 {
        owner.trigger(url, &json!(at)).await;
        let run = owner.claim_one().await;
        let large = (0..10).map(|at| step(&format!("s{at}"), "fetch", json!("x".repeat(60_000))));
        owner.store_steps(run.claim, large.collect()).await;
        owner.succeed(run.claim).await;
    }
    let first = owner.get(&format!("{path}/logs")).await;
    assert_eq!((first["logs"].as_array().unwrap().len(), &first["hasMore"]), (2, &json!(true)));
    let next = format!("{path}/logs?cursor={}", first["nextCursor"].as_str().unwrap());
    assert_eq!(owner.get(&next).await["logs"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_run_with_too_many_or_too_large_steps_shows_the_first_and_says_so() {
    let owner = Owner::new(&["automations.test_timeout=1ms"]).await;
    let (path, created) = owner.automation(http()).await;
    let url = created["triggerUrl"].as_str().unwrap();
    let executed = async |count: usize, bytes: usize| {
        let run_id = owner.trigger(url, &json!({})).await.run_id();
        let run = owner.claim_one().await;
        let steps = (0..count).map(|at| {
            let output = json!("x".repeat(bytes));
            let position = i32::try_from(at).unwrap();
            store::automations::StepRow { position, ..step(&format!("each[{at}].s"), "fetch", output) }
        });
        owner.store_steps(run.claim, steps.collect()).await;
        owner.succeed(run.claim).await;
        owner.get(&format!("{path}/runs/{run_id}")).await
    };
    // The input of each is an object of some bytes.
    for (count, bytes, shown) in
        [(0, 0, 0), (1_000, 10, 1_000), (1_001, 10, 1_000), (64, 65_000, 64), (90, 65_000, 64)]
    {
        let run = executed(count, bytes).await;
        let steps = run["steps"].as_array().unwrap();
        assert_eq!(
            (steps.len(), &run["stepsTruncated"]),
            (shown, &json!(shown < count)),
            "{count} of {bytes} bytes"
        );
        assert!(steps.iter().enumerate().all(|(at, step)| step["path"] == format!("each[{at}].s")));
    }
    let logs = owner.get(&format!("{path}/logs?limit=1")).await;
    assert_eq!(
        (logs["logs"][0]["steps"].as_array().unwrap().len(), &logs["logs"][0]["stepsTruncated"]),
        (64, &json!(true))
    );
}

#[tokio::test]
async fn a_run_is_cancelled_once_and_its_worker_writes_nothing_more() {
    let owner = Owner::new(&[]).await;
    let (path, created) = owner.automation(http()).await;
    let run_id = owner.trigger(created["triggerUrl"].as_str().unwrap(), &json!({})).await.run_id();
    let run = owner.claim_one().await;
    let cancel = format!("{path}/runs/{run_id}/cancel");
    let cancelled = owner.ok(Method::POST, &cancel, Value::Null).await;
    assert_eq!((&cancelled["status"], cancelled["finishedAt"].is_string()), (&json!("cancelled"), true));
    let again = owner.refused(Method::POST, &cancel, Value::Null).await;
    assert_eq!((again.0, again.1.as_str()), (409, "conflict"));
    let mut tx = owner.api.begin().await;
    let locked = store::automations::lock_run(&mut tx, owner.account_id, run.claim).await;
    assert!(locked.unwrap().is_none());
    let unknown = format!("{path}/runs/{}/cancel", owner.account_id);
    assert_eq!(owner.refused(Method::POST, &unknown, Value::Null).await.0, 404);
}

#[tokio::test]
async fn a_run_whose_definition_can_not_be_read_can_be_cancelled() {
    let owner = Owner::new(&[]).await;
    let (path, created) = owner.automation(http()).await;
    let run_id = owner.trigger(created["triggerUrl"].as_str().unwrap(), &json!({})).await.run_id();
    owner.api.execute("update automation_definitions set definition = '{}'").await.unwrap();
    let cancelled = owner.ok(Method::POST, &format!("{path}/runs/{run_id}/cancel"), Value::Null).await;
    assert_eq!(cancelled["status"], "cancelled");
    owner.get(&format!("{path}/logs")).await;
}

#[tokio::test]
async fn each_status_has_its_filter() {
    const STATUSES: [&str; 7] = ["queued", "running", "waiting", "success", "error", "cancelled", "skipped"];
    let owner = Owner::new(&[]).await;
    let (path, _) = owner.automation(http()).await;
    let insertion = format!(
        "insert into automation_runs (id, account_id, automation_id, definition_hash, trigger_type, trigger, status,
                                      due_at, created_at)
         select gen_random_uuid(), account_id, id, definition_hash, 'http', '{{}}', status,
                case when status in ('queued', 'running', 'waiting') then now() end, now()
         from automations, unnest(array['{}']) status, generate_series(1, 2)",
        STATUSES.join("','")
    );
    owner.api.execute(&insertion).await.unwrap();
    for status in STATUSES {
        let ids = format!(
            "select string_agg(id::text, ' ' order by id desc) from automation_runs where status = '{status}'"
        );
        let expected = owner.column(&ids).await;
        let expected: Vec<&str> = expected.split(' ').collect();
        let first = owner.get(&format!("{path}/logs?status={status}&limit=1")).await;
        assert_eq!(first["hasMore"], json!(true), "{status}");
        let next = first["nextCursor"].as_str().unwrap();
        let second = owner.get(&format!("{path}/logs?status={status}&limit=1&cursor={next}")).await;
        assert_eq!(second["hasMore"], json!(false), "{status}");
        let runs: Vec<&Value> =
            [&first, &second].iter().flat_map(|page| page["logs"].as_array().unwrap()).collect();
        let shown: Vec<&str> = runs.iter().map(|run| run["runId"].as_str().unwrap()).collect();
        assert_eq!(shown, expected, "{status}");
        assert!(runs.iter().all(|run| run["status"] == status), "{status}");
    }
}

#[tokio::test]
async fn a_run_that_waits_for_its_next_attempt_is_told_from_one_that_waits_for_a_time() {
    let owner = Owner::new(&[]).await;
    let (path, created) = owner.automation(http()).await;
    let url = created["triggerUrl"].as_str().unwrap();
    let mut ids = Vec::new();
    for (step_id, kind) in [("call", "fetch"), ("pause", "wait")] {
        ids.push(owner.trigger(url, &json!({})).await.run_id().to_string());
        let run = owner.claim_one().await;
        let waiting = StepRow { status: "waiting", ..step(step_id, kind, json!({})) };
        owner.store_steps(run.claim, vec![waiting]).await;
        let until = Clock::system().now() + TimeDelta::hours(1);
        owner.end(run.claim, RunResult::Waiting { until, resume: None }).await;
    }
    let listed = async |query: &str| {
        let logs = owner.get(&format!("{path}/logs?{query}")).await["logs"].clone();
        logs.as_array()
            .unwrap()
            .iter()
            .map(|log| log["runId"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(listed("status=waiting").await, [ids[1].clone(), ids[0].clone()]);
    assert_eq!(listed("status=waiting&isRetrying=true").await, [ids[0].clone()]);
    assert_eq!(listed("isRetrying=false").await, [ids[1].clone()]);
    let read = async |id: &str| owner.get(&format!("{path}/runs/{id}")).await;
    let (retrying, waiting) = (read(&ids[0]).await, read(&ids[1]).await);
    assert_eq!((&retrying["isRetrying"], &waiting["isRetrying"]), (&json!(true), &json!(false)));
    assert!(retrying["waitsUntil"].is_string() && waiting["waitsUntil"].is_string(), "{waiting}");
    let refused =
        owner.refused(Method::GET, &format!("{path}/logs?status=error&isRetrying=true"), Value::Null).await;
    assert_eq!(refused.2, [("isRetrying".to_owned(), "conflict".to_owned())]);
}
