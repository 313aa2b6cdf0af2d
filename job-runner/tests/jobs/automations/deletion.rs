//! An automation is deleted while runs of it are under way.

use sandbox::test::until;
use serde_json::json;
use store::automations::{
    LockedRuns, begin_deletion, delete_automation, delete_automation_runs, find_automation,
};
use uuid::Uuid;

use super::TestAutomation;
use crate::fixture::account::{Account, now};
use crate::fixture::receiver::Receiver;

impl TestAutomation<'_> {
    /// Deletes it in the stages of the API.
    async fn delete(&self) {
        let mut conn = store::acquire(&self.account.database.db).await.unwrap();
        assert!(begin_deletion(&mut conn, self.account_id, self.id, now()).await.unwrap());
        for locked in [LockedRuns::Skip, LockedRuns::Wait] {
            let mut last = Uuid::nil();
            while let Some(id) = delete_automation_runs(&mut conn, self.id, last, locked, 1).await.unwrap() {
                last = id;
            }
        }
        assert!(delete_automation(&mut conn, self.account_id, self.id).await.unwrap());
    }
}

#[tokio::test]
async fn a_deleted_automation_sends_nothing_more_and_leaves_no_rows() {
    let account = Account::new().await;
    let receiver = Receiver::stalled().await;
    let automation = account
        .automation(json!([
            {"id": "first", "type": "set", "values": {"n": 1}},
            {"id": "pause", "type": "wait", "resume": true, "if": "trigger.payload.waits"},
            {"id": "ask", "type": "fetch", "url": receiver.url, "timeoutMs": 60_000},
            {"id": "again", "type": "fetch", "url": receiver.url},
        ]))
        .await;
    let running = account.run_automations(&[]).await;
    let waiting = automation.start(json!({"waits": true})).await;
    automation.run_when(waiting, "waiting").await;
    automation.start(json!({"waits": false})).await;
    until(async || receiver.count() == 1).await;
    assert_eq!(automation.runs().await.len(), 2);
    assert!(account.number("select count(*) from automation_steps").await > 0);

    automation.delete().await;
    assert!(!account.resume(waiting, 0).await);
    receiver.release();
    // All walks have ended then.
    running.stop().await;
    assert_eq!(receiver.count(), 1, "no further request");
    let mut conn = store::acquire(&account.database.db).await.unwrap();
    assert!(find_automation(&mut conn, account.id, automation.id).await.unwrap().is_none());
    for rows in [
        "select count(*) from automation_runs",
        "select count(*) from automation_steps",
        "select count(*) from automation_statistics",
    ] {
        assert_eq!(account.number(rows).await, 0, "{rows}");
    }
}
