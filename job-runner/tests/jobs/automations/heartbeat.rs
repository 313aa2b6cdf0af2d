//! A worker extends the leases of its runs, and learns which of them are no longer its own.

use std::collections::BTreeSet;

use chrono::{DateTime, TimeDelta, Utc};
use sandbox::test::until;
use serde_json::{Value, json};

use super::pairs;
use crate::fixture::account::Account;
use crate::fixture::receiver::Receiver;

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_takes_longer_than_its_lease_is_walked_by_one_job_runner() {
    let lease = TimeDelta::milliseconds(1_500);
    let account = Account::new().await;
    let receiver = Receiver::stalled().await;
    let steps = json!([{"id": "ask", "type": "fetch", "url": receiver.url, "timeoutMs": 60_000}]);
    let automation = account.automation(steps).await;
    let setting = format!("automations.lease_ttl={}ms", lease.num_milliseconds());
    let (one, other) =
        (account.run_automations(&[&setting]).await, account.run_automations(&[&setting]).await);
    let id = automation.start(Value::Null).await;
    until(async || receiver.count() == 1).await;
    // Each heartbeat writes when the lease ends. Three leases have passed when the end is that of a fourth one.
    let ends = async || -> Option<DateTime<Utc>> {
        let run = automation.run(id).await;
        run.due_at.filter(|due_at| run.started_at.is_some_and(|started_at| *due_at > started_at + lease * 4))
    };
    until(async || ends().await.is_some()).await;
    assert_eq!(receiver.count(), 1);
    receiver.release();
    automation.run_when(id, "success").await;
    one.stop().await;
    other.stop().await;
    assert_eq!(receiver.count(), 1, "the other job-runner did not take it over");
    assert_eq!(automation.outline(id).await, pairs(&[("ask", "success")]));
    assert_eq!(automation.read().await.statistics.runs, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_lease_expires_is_walked_again_and_the_late_result_is_dropped() {
    let account = Account::new().await;
    // No heartbeat arrives. A claim has a new lease id.
    account
        .change(
            "create function keep() returns trigger language plpgsql as 'begin return old; end';
             create trigger keep before update on automation_runs for each row
             when (old.status = 'running' and new.status = 'running' and old.lease_id = new.lease_id
                   and new.due_at > old.due_at) execute function keep()",
        )
        .await;
    let receiver = Receiver::stalled().await;
    let steps = json!([{"id": "ask", "type": "fetch", "url": receiver.url, "timeoutMs": 60_000}]);
    let automation = account.automation(steps).await;
    let setting = "automations.lease_ttl=1500ms";
    let (one, other) = (account.run(&[setting]).await, account.run(&[setting]).await);
    let id = automation.start(Value::Null).await;
    until(async || receiver.count() >= 2).await;
    receiver.release();
    automation.run_when(id, "success").await;
    one.stop().await;
    other.stop().await;
    let keys: BTreeSet<_> =
        receiver.received().iter().map(|one| one.header("idempotency-key").to_owned()).collect();
    assert_eq!(keys.len(), 1, "the server can tell that the requests are one");
    assert_eq!(automation.outline(id).await, pairs(&[("ask", "success")]));
    assert_eq!(automation.read().await.statistics.runs, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_run_frees_its_permit_although_its_server_does_not_answer() {
    let account = Account::new().await;
    let receiver = Receiver::stalled().await;
    let steps = json!([{"id": "ask", "type": "fetch", "url": receiver.url, "timeoutMs": 60_000}]);
    let automation = account.automation(steps).await;
    let settings = ["automations.max_concurrent_heavy_per_account=1", "automations.lease_ttl=3s"];
    let _running = account.run_automations(&settings).await;
    let cancelled = automation.start(Value::Null).await;
    until(async || receiver.count() == 1).await;
    let next = automation.start(Value::Null).await;
    assert!(automation.cancel(cancelled).await);
    // The next one starts when the heartbeat has found that the first one is cancelled.
    until(async || receiver.count() == 2).await;
    receiver.release();
    automation.run_when(next, "success").await;
    let run = automation.run(cancelled).await;
    assert_eq!(run.status.as_str(), "cancelled");
    let timed_out_at = run.started_at.unwrap() + TimeDelta::minutes(1);
    assert!(automation.steps(next).await[0].started_at < timed_out_at, "the request itself ended only then");
    assert!(automation.steps(cancelled).await.is_empty());
}
