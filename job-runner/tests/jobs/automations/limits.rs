//! Concurrency limits, and how long runs are kept.

use chrono::TimeDelta;
use sandbox::test::until;
use serde_json::{Value, json};
use uuid::Uuid;

use super::PLAN;
use crate::fixture::account::{Account, now};
use crate::fixture::receiver::Receiver;

#[tokio::test]
async fn as_many_runs_of_a_key_are_active_as_the_limit_allows() {
    let account = Account::new().await;
    let receiver = Receiver::stalled().await;
    let definition = json!({
        "trigger": {"type": "http"},
        "concurrency": {"limit": 2, "key": "{{ trigger.payload.key }}"},
        "steps": [{"id": "ask", "type": "fetch", "url": receiver.url, "timeoutMs": 60_000}],
    });
    let automation = account.automation_with(&definition, None, &json!({})).await;
    let mut runs = Vec::new();
    for key in ["a", "a", "a", "a", "b"] {
        runs.push(automation.start(json!({"key": key})).await);
    }
    let (_one, _other) = (account.run_automations(&[]).await, account.run_automations(&[]).await);
    until(async || receiver.count() == 3).await;
    let queued = "select count(*) from automation_runs where status = 'queued'";
    assert_eq!(account.number(queued).await, 2);
    receiver.release();
    for id in runs {
        automation.run_when(id, "success").await;
    }
    assert_eq!(receiver.most_at_a_time(), 3);
}

#[tokio::test]
async fn runs_that_wait_for_a_server_leave_permits_to_the_accounts_other_runs() {
    let account = Account::new().await;
    let receiver = Receiver::stalled().await;
    let ask = json!([{"id": "ask", "type": "fetch", "url": receiver.url, "timeoutMs": 60_000}]);
    let slow = account.automation(ask).await;
    let quick = account.automation(json!([{"id": "a", "type": "set", "values": {"n": 1}}])).await;
    let asking: Vec<_> = (0..6).map(|_| slow.new_run(&Value::Null)).collect();
    let ids: Vec<Uuid> = asking.iter().map(|run| run.id).collect();
    slow.start_all(asking).await;
    let _running = account.run_automations(&["automations.max_concurrent_heavy_per_account=2"]).await;
    until(async || receiver.count() == 2).await;
    let id = quick.start(Value::Null).await;
    quick.run_when(id, "success").await;
    assert_eq!(receiver.count(), 2);
    receiver.release();
    for id in ids {
        slow.run_when(id, "success").await;
    }
    assert_eq!(receiver.most_at_a_time(), 2);
}

#[tokio::test]
async fn a_waiting_run_holds_its_place_and_the_next_starts_soon_after_it() {
    let account = Account::new().await;
    let definition = json!({
        "trigger": {"type": "http"},
        "concurrency": {"limit": 1},
        "steps": [{"id": "approval", "type": "wait", "resume": true}],
    });
    let automation = account.automation_with(&definition, None, &json!({})).await;
    let (first, second) = (automation.start(Value::Null).await, automation.start(Value::Null).await);
    let _running = account.run_automations(&[]).await;
    automation.run_when(first, "waiting").await;
    assert_eq!(automation.run(second).await.status.as_str(), "queued");
    assert!(automation.cancel(first).await);
    automation.run_when(second, "waiting").await;
}

#[tokio::test]
async fn a_hundred_runs_with_a_limit_of_one_run_one_after_the_other_without_polls() {
    let account = Account::new().await;
    let definition = json!({
        "trigger": {"type": "http"},
        "concurrency": {"limit": 1},
        "steps": [{"id": "a", "type": "set", "values": {"n": 1}}],
    });
    let automation = account.automation_with(&definition, None, &json!({})).await;
    let runs = (0..100).map(|_| automation.new_run(&Value::Null)).collect();
    automation.start_all(runs).await;
    // After the first poll, only ends of runs start claims.
    let _running = account.run_automations(&["automations.poll_interval=1h"]).await;
    until(async || automation.read().await.statistics.runs == 100).await;
}

#[tokio::test]
async fn ended_runs_are_deleted_after_the_retention_of_their_plan() {
    let account = Account::new().await;
    let automation = account.automation(json!([{"id": "a", "type": "set", "values": {"n": 1}}])).await;
    let rng = service::Rng::system();
    let kept = now() - domain::automations::retention(PLAN);
    let at = |offset: TimeDelta| rng.uuid_v7(kept + offset);
    let (old, young) = (at(TimeDelta::hours(-1)), at(TimeDelta::hours(1)));
    let running = account.run_automations(&[]).await;
    for id in [old, young] {
        let mut run = automation.new_run(&Value::Null);
        run.id = id;
        automation.start_run(run).await;
        automation.run_when(id, "success").await;
    }
    let waiting = at(TimeDelta::hours(-2));
    let mut run = automation.new_run(&Value::Null);
    run.id = waiting;
    running.stop().await;
    automation.start_run(run).await;
    account.change(&format!(
        "update automation_runs set status = 'waiting', due_at = now() + interval '1 day' where id = '{waiting}';
         update automation_runs set finished_at = '{}' where id = '{old}';
         insert into automation_definitions (account_id, hash, definition, created_at)
         select account_id, '\\x01', definition, now() - interval '2 hours' from automation_definitions limit 1",
        (kept - TimeDelta::hours(1)).to_rfc3339(),
    ))
    .await;
    let _running = account.run_automations(&["automations.cleanup_interval=20ms"]).await;
    let ids = async || automation.runs().await.into_iter().map(|run| run.id).collect::<Vec<Uuid>>();
    until(async || ids().await == [young, waiting]).await;
    assert_eq!(account.number("select count(distinct run_id) from automation_steps").await, 1);
    until(async || account.number("select count(*) from automation_definitions").await == 1).await;
}
