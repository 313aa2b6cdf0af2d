//! The 201 of a submission does not depend on the automations of its form.

use std::time::Duration;

use http::StatusCode;
use sandbox::test::automation;
use serde_json::{Value, json};
use store::automations::{delete_automation, lock_due_triggers};
use uuid::Uuid;

use crate::fixtures::{Account, now, one_text_field, submit_path};
use crate::harness::Edge;

/// A form with an automation that its submissions start.
struct Starting<'a> {
    edge: &'a Edge,
    account: Account<'a>,
    form: Uuid,
    automation: Uuid,
}

impl<'a> Starting<'a> {
    /// Submissions of a plan without limits are stored in groups, those of the free plan one by one.
    async fn on(edge: &'a Edge, plan: &str) -> Self {
        let account = edge.account(&format!("the-{plan}-otter")).await;
        edge.run(&format!("update accounts set plan = '{plan}' where id = '{}'", account.id)).await;
        let form = account.form(one_text_field()).await;
        let automation_id = service::Rng::system().uuid_v7(now());
        automation(&edge.database, account.id, automation_id, Some(form), now()).await;
        Self { edge, account, form, automation: automation_id }
    }

    /// Submits the form: it must be stored once and marked to start a run.
    async fn submit(&self) {
        let path = submit_path(self.form);
        let body = json!({"a": "x"});
        let sending = self.edge.visitor.post(&path, &body);
        let sent = tokio::time::timeout(Duration::from_secs(20), sending).await.unwrap();
        assert_eq!(sent.status, StatusCode::CREATED, "{}", sent.text());
        assert_eq!(self.account.submissions(self.form).await, [json!({"a": "x"})]);
        assert_eq!(self.account.count(self.form).await, 1);
        let submission_id = sent.json()["submissionId"].clone();
        assert_eq!(self.marked().await, [submission_id]);
    }

    /// The submissions that are to start a run.
    async fn marked(&self) -> Vec<Value> {
        let mut tx = store::begin(&self.edge.database.db).await.unwrap();
        let due = lock_due_triggers(&mut tx, 100).await.unwrap();
        let of_form = due.into_iter().filter(|one| one.form_id == self.form);
        of_form.map(|one| json!(one.submission_id)).collect()
    }
}

#[tokio::test]
async fn a_submission_is_stored_although_the_definition_of_its_automation_can_not_be_read() {
    let edge = Edge::start().await;
    for plan in ["scale", "free"] {
        let starting = Starting::on(&edge, plan).await;
        edge.run("update automation_definitions set definition = 'no definition'").await;
        starting.submit().await;
    }
}

#[tokio::test]
async fn a_submission_is_stored_although_its_automation_is_locked_for_its_deletion() {
    let edge = Edge::start().await;
    for plan in ["scale", "free"] {
        let starting = Starting::on(&edge, plan).await;
        // A deletion locks the row as `for update` does.
        let mut locking = store::begin(&edge.database.db).await.unwrap();
        assert!(delete_automation(&mut locking, starting.account.id, starting.automation).await.unwrap());
        starting.submit().await;
        store::rollback(locking).await.unwrap();
    }
}

#[tokio::test]
async fn a_submission_is_stored_although_the_months_limit_of_runs_is_reached() {
    let edge = Edge::start().await;
    for plan in ["scale", "free"] {
        let starting = Starting::on(&edge, plan).await;
        let used = format!(
            "insert into monthly_usage (account_id, month, automation_runs)
             values ('{}', date_trunc('month', now() at time zone 'utc'), 1000000000)",
            starting.account.id
        );
        edge.run(&used).await;
        starting.submit().await;
    }
}
