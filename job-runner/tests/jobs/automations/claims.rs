//! Two job-runners share the runs, and each run is walked once.

use serde_json::{Value, json};

use crate::fixture::account::Account;
use crate::fixture::receiver::Receiver;

#[tokio::test(flavor = "multi_thread")]
async fn two_job_runners_walk_each_run_once() {
    const COUNT: usize = 300;
    let account = Account::new().await;
    let receiver = Receiver::responding([]).await;
    let automation = account.automation(json!([{"id": "ask", "type": "fetch", "url": receiver.url}])).await;
    let (one, other) = (account.run_automations(&[]).await, account.run_automations(&[]).await);
    let runs = (0..COUNT).map(|_| automation.new_run(&Value::Null)).collect();
    automation.start_all(runs).await;
    automation.until_ended(COUNT).await;
    assert_eq!(receiver.count(), COUNT);
    let keys: std::collections::BTreeSet<_> =
        receiver.received().iter().map(|one| one.header("idempotency-key").to_owned()).collect();
    assert_eq!(keys.len(), COUNT);
    one.stop().await;
    other.stop().await;
}

#[tokio::test]
async fn runs_do_not_need_redis() {
    let account = Account::new().await;
    let automation = account.automation(json!([{"id": "a", "type": "set", "values": {"n": 1}}])).await;
    let closed_port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let _running = account.run_automations(&[&format!("redis.url=redis://{closed_port}")]).await;
    let id = automation.start(Value::Null).await;
    automation.run_when(id, "success").await;
}
