//! Webhooks are notified when a form closes, once each time, whatever closes it.

use chrono::TimeDelta;
use domain::plans::Plan;
use domain::submissions::Status;
use sandbox::test::until;
use store::forms::{Form, find_form, find_open_form, insert_form, lock_form, update_form};
use store::submissions::{
    NewSubmission, StatusLimits, SubmissionOutcome, UpdateOutcome, WriteContext, find_submission,
    insert_submission, update_status,
};
use uuid::Uuid;

use crate::fixture::account::{Account, new_id, now};

const LATER: TimeDelta = TimeDelta::hours(1);
const SHORT_INTERVALS: [&str; 1] = ["form_closing.poll_interval=20ms"];

fn writer() -> WriteContext<'static> {
    WriteContext { now: now(), traceparent: None, depth: 0, new_id: &new_id }
}

impl Account {
    /// Creates a form with a webhook for all of its events.
    async fn form_with_webhook(&self, shape: impl FnOnce(&mut Form)) -> Uuid {
        let mut form = Form::new(new_id(), "Contact".to_owned(), Vec::new(), now());
        shape(&mut form);
        let mut conn = store::acquire(&self.database.db).await.unwrap();
        insert_form(&mut conn, self.id, &form).await.unwrap();
        self.webhook_with("http://127.0.0.1:9/", |webhook| {
            webhook.events = vec!["*".to_owned()];
            webhook.form_ids = Some(vec![form.id]);
        })
        .await;
        form.id
    }

    async fn edit(&self, id: Uuid, change: impl FnOnce(&mut Form)) {
        let mut tx = store::begin(&self.database.db).await.unwrap();
        let mut form = lock_form(&mut tx, self.id, id).await.unwrap().unwrap();
        change(&mut form);
        update_form(&mut tx, self.id, &form, now()).await.unwrap();
        store::commit(tx).await.unwrap();
    }

    /// Submits the form. Returns the submission, or `None` if it was refused.
    async fn submit(&self, id: Uuid, spam_reasons: &[&str]) -> Option<Uuid> {
        let mut tx = store::begin(&self.database.db).await.unwrap();
        let form = find_form(&mut tx, self.id, id).await.unwrap().unwrap();
        let new = NewSubmission {
            id: new_id(),
            external_id: None,
            payload: serde_json::Map::new(),
            extra: serde_json::Map::new(),
            spam_reasons: spam_reasons.iter().map(ToString::to_string).collect(),
        };
        let plan = find_open_form(&mut tx, id).await.unwrap().unwrap().plan.limits().submissions_per_form;
        let outcome = insert_submission(&mut tx, self.id, &form, &new, plan, &writer()).await.unwrap();
        let SubmissionOutcome::Stored(_) = outcome else { return None };
        store::commit(tx).await.unwrap();
        Some(new.id)
    }

    /// Returns the reasons of all `form.closed` events, oldest first.
    async fn closings(&self) -> Vec<String> {
        let reasons = "select payload #>> '{data,reason}' from deliveries where event = 'form.closed'
                       order by created_at, id";
        sqlx::query_scalar(reasons).fetch_all(&self.database.db).await.unwrap()
    }

    /// Waits until no form is due.
    async fn until_polled(&self) {
        let nothing_due =
            "do $$ begin assert not exists (select from forms where closing_look_at <= now()); end $$";
        until(async || store::execute_raw(&self.database.db, nothing_due).await.is_ok()).await;
    }

    /// Moves a form's closing time to now and waits until it was polled.
    async fn reach_closing_time(&self, form: Uuid) {
        let moved = format!(
            "do $$ begin
                 update forms set closes_at = now(), closing_look_at = now()
                 where id = '{form}' and closes_at > now() and closing_look_at = closes_at;
                 assert found, 'the form would not have been polled';
             end $$"
        );
        self.change(&moved).await;
        self.until_polled().await;
    }
}

#[tokio::test]
async fn a_form_closes_once_with_several_job_runners_and_again_after_it_was_reopened() {
    let account = Account::new().await;
    let form = account.form_with_webhook(|form| form.closes_at = Some(now() + LATER)).await;
    let _open = account.form_with_webhook(|form| form.closes_at = Some(now() + LATER)).await;
    let _runners = [account.run(&SHORT_INTERVALS).await, account.run(&SHORT_INTERVALS).await];
    account.reach_closing_time(form).await;
    assert_eq!(account.closings().await, ["closed"]);
    // An edit does not reopen it, also not one to another past time.
    account.edit(form, |form| form.name = "Another".to_owned()).await;
    account.edit(form, |form| form.closes_at = Some(now() - TimeDelta::hours(1))).await;
    account.until_polled().await;
    assert_eq!(account.closings().await, ["closed"]);
    account.edit(form, |form| form.closes_at = Some(now() + LATER)).await;
    account.reach_closing_time(form).await;
    assert_eq!(account.closings().await, ["closed", "closed"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_concurrent_submissions_the_one_that_fills_a_form_closes_it() {
    let account = Account::new().await;
    let form = account.form_with_webhook(|form| form.max_submissions = Some(3)).await;
    assert!(account.submit(form, &[]).await.is_some());
    assert_eq!(account.closings().await, [""; 0], "the form is not full");
    let stored = futures::future::join_all((0..10).map(|_| account.submit(form, &[]))).await;
    assert_eq!(stored.iter().flatten().count(), 2);
    assert_eq!(account.closings().await, ["full"]);
    // Its owner deletes one, so it is open again.
    account.change(&format!("update forms set submission_count = 2 where id = '{form}'")).await;
    assert!(account.submit(form, &[]).await.is_some());
    assert_eq!(account.closings().await, ["full", "full"]);
}

#[tokio::test]
async fn a_submission_that_is_no_longer_spam_may_fill_a_form() {
    let account = Account::new().await;
    let id = account.form_with_webhook(|form| form.max_submissions = Some(1)).await;
    let spam = account.submit(id, &["honeypot"]).await.unwrap();
    assert_eq!(account.closings().await, [""; 0], "spam does not count");
    let mut tx = store::begin(&account.database.db).await.unwrap();
    let form = lock_form(&mut tx, account.id, id).await.unwrap().unwrap();
    let submission = find_submission(&mut tx, account.id, id, spam).await.unwrap().unwrap();
    let changed = update_status(
        &mut tx,
        account.id,
        &form,
        &submission,
        Status::Received,
        StatusLimits { submissions: -1, storage_bytes: -1 },
        &writer(),
    )
    .await;
    assert!(matches!(changed.unwrap(), UpdateOutcome::Done(..)));
    store::commit(tx).await.unwrap();
    assert_eq!(account.closings().await, ["full"]);
}

#[tokio::test]
async fn an_edit_may_close_a_form_and_a_form_that_was_never_open_does_not_close() {
    let account = Account::new().await;
    let filled = account.form_with_webhook(|_| {}).await;
    account.submit(filled, &[]).await.unwrap();
    let closed = account.form_with_webhook(|_| {}).await;
    let _never_open =
        account.form_with_webhook(|form| form.closes_at = Some(now() - TimeDelta::hours(1))).await;
    let _runner = account.run(&SHORT_INTERVALS).await;
    account.edit(filled, |form| form.max_submissions = Some(1)).await;
    account.until_polled().await;
    assert_eq!(account.closings().await, ["full"]);
    account.edit(closed, |form| form.closes_at = Some(now())).await;
    account.until_polled().await;
    assert_eq!(account.closings().await, ["full", "closed"]);
}

#[tokio::test]
async fn a_form_filled_to_the_plans_limit_is_not_closed_again_by_an_edit() {
    let account = Account::new().await;
    account.change("update accounts set plan = 'free'").await;
    let limit = Plan::Free.limits().submissions_per_form;
    let form = account.form_with_webhook(|_| {}).await;
    account.change(&format!("update forms set submission_count = {} where id = '{form}'", limit - 1)).await;
    account.submit(form, &[]).await.unwrap();
    assert_eq!(account.closings().await, ["full"]);
    let _runner = account.run(&SHORT_INTERVALS).await;
    account.edit(form, |form| form.max_submissions = Some(limit - 10)).await;
    account.until_polled().await;
    account.edit(form, |form| form.closes_at = Some(now())).await;
    account.until_polled().await;
    assert_eq!(account.closings().await, ["full"]);
}

#[tokio::test]
async fn a_form_that_is_full_at_its_closing_time_does_not_close_again() {
    let account = Account::new().await;
    let form = account.form_with_webhook(|form| {
        form.max_submissions = Some(1);
        form.closes_at = Some(now() + LATER);
    });
    let form = form.await;
    account.submit(form, &[]).await.unwrap();
    let _runner = account.run(&SHORT_INTERVALS).await;
    account.reach_closing_time(form).await;
    assert_eq!(account.closings().await, ["full"]);
}
