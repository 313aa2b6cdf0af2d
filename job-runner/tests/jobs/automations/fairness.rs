//! One account's many queued runs delay another account's run by two seconds at most.

use std::time::Duration;

use sandbox::test::{trial, until};
use serde_json::json;

use crate::fixture::account::{Account, new_id, now};

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_queued_runs_of_one_account_delay_another_by_two_seconds_at_most() {
    const COUNT: usize = 10_000;
    let account = Account::new().await;
    let definition = super::with_steps(json!([
        {"id": "a", "type": "set", "values": {"n": "{{ trigger.payload.n + 1 }}"}},
        {"id": "b", "type": "condition", "branches": [{"if": "steps.a.n > 0", "steps": [
            {"id": "c", "type": "set", "values": {"n": 1}}]}]},
    ]));
    let busy = account.automation_with(&definition, None, &json!({})).await;
    for _ in 0..10 {
        let runs = (0..COUNT / 10).map(|number| busy.new_run(&json!({"n": number}))).collect();
        busy.start_all(runs).await;
    }
    let other = new_id();
    trial(&account.database, other, now()).await;
    let quiet = account.automation_of(other, &definition, None, &json!({})).await;
    let _running = account.run_automations(&[]).await;
    let ended = async || busy.read().await.statistics.runs;
    until(async || ended().await > 0).await;
    let mut delays = Vec::new();
    for _ in 0..3 {
        let id = quiet.start(json!({"n": 1})).await;
        let run = quiet.run_when(id, "success").await;
        delays.push((run.finished_at.unwrap() - run.created_at).to_std().unwrap());
    }
    let left = i64::try_from(COUNT).unwrap() - ended().await;
    assert!(delays.iter().all(|delay| *delay <= Duration::from_secs(2)), "{delays:?}, {left} runs left");
    busy.until_ended(COUNT).await;
}
