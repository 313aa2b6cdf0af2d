//! Waits for a time, until a time, and for a link.

use serde_json::{Value, json};
use store::automations::resume_run;
use uuid::Uuid;

use crate::fixture::account::{Account, now};
use crate::fixture::receiver::Receiver;

impl Account {
    /// Uses the link of this number, as a call of its URL does.
    pub(super) async fn resume(&self, run_id: Uuid, number: i32) -> bool {
        let mut conn = store::acquire(&self.database.db).await.unwrap();
        let payload = json!({"approved": true});
        resume_run(&mut conn, run_id, number, &payload, now()).await.unwrap() == Some(self.id)
    }
}

#[tokio::test]
async fn a_run_waits_for_a_time_and_until_a_time() {
    let account = Account::new().await;
    let steps = json!([
        {"id": "before", "type": "set", "values": {"n": 1}},
        {"id": "for", "type": "wait", "for": "1s"},
        {"id": "until", "type": "wait", "until": "{{ trigger.payload.at }}"},
        {"id": "past", "type": "wait", "until": "2020-01-01T00:00:00Z"},
        {"id": "after", "type": "set", "values": {"n": "{{ steps.before.n + 1 }}"}},
    ]);
    let automation = account.automation(steps).await;
    let _running = account.run_automations(&[]).await;
    let at = now() + chrono::TimeDelta::seconds(3);
    let id = automation.start(json!({"at": at.to_rfc3339()})).await;
    let run = automation.run_when(id, "success").await;
    assert!(run.finished_at.unwrap() >= at);
    let steps = automation.steps(id).await;
    assert_eq!(steps[4].output, json!({"n": 2}));
    assert!(steps[1].finished_at - steps[1].started_at >= chrono::TimeDelta::seconds(1));
}

#[tokio::test]
async fn a_link_resumes_a_run_once_and_its_payload_is_read() {
    let account = Account::new().await;
    let receiver = Receiver::responding([]).await;
    let url = "{{ run.resumeUrl }}";
    let steps = json!([
        {"id": "ask", "type": "fetch", "method": "POST", "url": receiver.url, "body": {"link": url}},
        {"id": "approval", "type": "wait", "resume": true, "timeout": "1h"},
        {"id": "result", "type": "set", "values": {"ok": "{{ steps.approval.payload.approved }}"}},
        {"id": "more", "type": "wait", "resume": true, "timeout": "1s", "onTimeout": "continue"},
        {"id": "last", "type": "set", "values": {"resumed": "{{ steps.more.resumed }}"}},
    ]);
    let automation = account.automation(steps).await;
    let _running = account.run_automations(&[]).await;
    let id = automation.start(Value::Null).await;
    let run = automation.run_when(id, "waiting").await;
    assert_eq!(run.resume_number, Some(0));
    let link = receiver.received()[0].json()["link"].as_str().unwrap().to_owned();
    let path = format!("https://app.example.com/api/automations/resume/{id}/0/");
    assert!(link.starts_with(&path) && link.len() == path.len() + 32, "{link}");
    assert!(!account.resume(id, 1).await, "another wait's link");
    assert!(account.resume(id, 0).await && !account.resume(id, 0).await);
    automation.run_when(id, "success").await;
    let steps = automation.steps(id).await;
    assert_eq!((&steps[2].output, &steps[4].output), (&json!({"ok": true}), &json!({"resumed": false})));
    assert_eq!(steps[0].input["body"], json!({"link": "***"}), "who reads the log could approve");
    assert!(!account.resume(id, 1).await);
}

#[tokio::test]
async fn a_wait_survives_all_job_runners() {
    let account = Account::new().await;
    let automation = account.automation(json!([{"id": "pause", "type": "wait", "for": "1h"}])).await;
    let running = account.run_automations(&[]).await;
    let id = automation.start(Value::Null).await;
    automation.run_when(id, "waiting").await;
    running.stop().await;
    // As if the hour passed.
    let passed = "update automation_runs set due_at = now();
                  update automation_steps set output = json_build_object('until', now())";
    account.change(passed).await;
    let _running = account.run_automations(&[]).await;
    automation.run_when(id, "success").await;
}
