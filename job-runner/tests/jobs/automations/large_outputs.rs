//! Outputs that are too long for the log are read whole by the steps after them.

use axum::body::Body;
use axum::response::Response;
use serde_json::{Value, json};

use crate::fixture::account::Account;
use crate::fixture::receiver::Receiver;

const SEALED: &str = "select count(*) from automation_steps where sealed_output is not null";
/// Elements of the answer, about 200 KB.
const COUNT: usize = 4_000;

/// A list of objects as JSON.
fn large_answer() -> Response {
    let list: Vec<_> = (1..=COUNT).map(|n| json!({"n": n, "text": "x".repeat(32)})).collect();
    let body = Value::from(list).to_string();
    assert!(body.len() > 200_000, "{}", body.len());
    Response::builder().header("content-type", "application/json").body(Body::from(body)).unwrap()
}

#[tokio::test]
async fn a_large_output_is_cut_in_the_log_read_whole_after_a_wait_and_forgotten_at_the_end() {
    let account = Account::new().await;
    let receiver = Receiver::responding([large_answer(), large_answer()]).await;
    let last = format!("{{{{ steps.ask.body[{}].n }}}}", COUNT - 1);
    let automation = account
        .automation(json!([
            {"id": "ask", "type": "fetch", "url": receiver.url},
            {"id": "pause", "type": "wait", "resume": true},
            {"id": "short", "type": "wait", "for": "1s"},
            {"id": "result", "type": "set", "values": {"last": last, "count": "{{ len(steps.ask.body) }}"}},
        ]))
        .await;
    let first = account.run_automations(&[]).await;
    let (resumed, cancelled) = (automation.start(Value::Null).await, automation.start(Value::Null).await);
    for id in [resumed, cancelled] {
        automation.run_when(id, "waiting").await;
    }
    assert_eq!(account.number(SEALED).await, 2);
    assert!(automation.cancel(cancelled).await);
    assert_eq!(account.number(SEALED).await, 1, "a cancelled run reads nothing more");
    // Another process has nothing in memory.
    first.stop().await;
    assert!(account.resume(resumed, 0).await);
    let _second = account.run_automations(&[]).await;
    automation.run_when(resumed, "success").await;
    let steps = automation.steps(resumed).await;
    let logged = &steps[0].output;
    assert_eq!(logged["truncated"], json!(true));
    assert!(logged["bytes"].as_u64().unwrap() > 200_000, "{}", logged["bytes"]);
    assert!(logged.to_string().len() <= automation::masking::LOGGED_BYTES_MAX);
    assert_eq!(steps[3].output, json!({"last": COUNT, "count": COUNT}));
    assert_eq!(account.number(SEALED).await, 0);
    assert_eq!(receiver.count(), 2, "no request was sent again");
}
