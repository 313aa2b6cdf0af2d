//! Webhooks are told of a form that closes: once each time, whatever closes it.

use chrono::TimeDelta;
use domain::plans::Plan;
use domain::submissions::Status;
use sandbox::test::until;
use store::forms::{Form, find_form, find_open_form, insert_form, lock_form, update_form};
use store::submissions::{
    NewSubmission, SubmissionOutcome, UpdateOutcome, WriteContext, find_submission, insert_submission,
    update_status,
};
use uuid::Uuid;

use crate::harness::{Account, new_id, now};

const LATER: TimeDelta = TimeDelta::hours(1);
const HURRY: [&str; 1] = ["form_closing.poll_interval=20ms"];

fn writer() -> WriteContext<'static> {
    WriteContext { now: now(), traceparent: None, new_id: &new_id }
}

impl Account {
    /// A form that a webhook is told everything of.
    async fn heard_form(&self, shape: impl FnOnce(&mut Form)) -> Uuid {
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

    /// Submits; gives the submission, or nothing if it was refused.
    async fn submit(&self, id: Uuid, spam_reasons: &[&str]) -> Option<Uuid> {
        let mut tx = store::begin(&self.database.db).await.unwrap();
        let form = find_form(&mut tx, self.id, id).await.unwrap().unwrap();
        let new = NewSubmission {
            id: new_id(),
            external_id: None,
            payload: serde_json::Map::new(),
            spam_reasons: spam_reasons.iter().map(ToString::to_string).collect(),
        };
        let plan = find_open_form(&mut tx, id).await.unwrap().unwrap().plan.limits().submissions_per_form;
        let taken = insert_submission(&mut tx, self.id, &form, &new, plan, &writer()).await.unwrap();
        let SubmissionOutcome::Stored(_) = taken else { return None };
        store::commit(tx).await.unwrap();
        Some(new.id)
    }

    /// Why forms had closed, as webhooks are told, the first first.
    async fn closings(&self) -> Vec<String> {
        let reasons = "select payload #>> '{data,reason}' from deliveries where event = 'form.closed'
                       order by created_at, id";
        sqlx::query_scalar(reasons).fetch_all(&self.database.db).await.unwrap()
    }

    /// Waits until there is nothing due to look at.
    async fn looked(&self) {
        let nothing_due =
            "do $$ begin assert not exists (select from forms where closing_look_at <= now()); end $$";
        until(async || store::execute_raw(&self.database.db, nothing_due).await.is_ok()).await;
    }

    /// Lets the time come at which a form closes, and somebody look.
    async fn let_time_come(&self, form: Uuid) {
        let moved = format!(
            "do $$ begin
                 update forms set closes_at = now(), closing_look_at = now()
                 where id = '{form}' and closes_at > now() and closing_look_at = closes_at;
                 assert found, 'nobody would have looked';
             end $$"
        );
        self.change(&moved).await;
        self.looked().await;
    }
}

#[tokio::test]
async fn a_form_whose_time_comes_is_told_of_once_by_however_many_runners_and_again_when_it_was_reopened() {
    let account = Account::new().await;
    let form = account.heard_form(|form| form.closes_at = Some(now() + LATER)).await;
    let _open = account.heard_form(|form| form.closes_at = Some(now() + LATER)).await;
    let _runners = [account.run(&HURRY).await, account.run(&HURRY).await];
    account.let_time_come(form).await;
    assert_eq!(account.closings().await, ["closed"]);
    // An edit opens nothing, be it to another time that has passed.
    account.edit(form, |form| form.name = "Another".to_owned()).await;
    account.edit(form, |form| form.closes_at = Some(now() - TimeDelta::hours(1))).await;
    account.looked().await;
    assert_eq!(account.closings().await, ["closed"]);
    account.edit(form, |form| form.closes_at = Some(now() + LATER)).await;
    account.let_time_come(form).await;
    assert_eq!(account.closings().await, ["closed", "closed"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_submissions_at_once_the_one_that_fills_a_form_tells_of_it() {
    let account = Account::new().await;
    let form = account.heard_form(|form| form.max_submissions = Some(3)).await;
    assert!(account.submit(form, &[]).await.is_some());
    assert_eq!(account.closings().await, [""; 0], "there is room");
    let taken = futures::future::join_all((0..10).map(|_| account.submit(form, &[]))).await;
    assert_eq!(taken.iter().flatten().count(), 2);
    assert_eq!(account.closings().await, ["full"]);
    // Its owner deletes one: it is open again.
    account.change(&format!("update forms set submission_count = 2 where id = '{form}'")).await;
    assert!(account.submit(form, &[]).await.is_some());
    assert_eq!(account.closings().await, ["full", "full"]);
}

#[tokio::test]
async fn what_is_found_to_be_no_spam_may_fill_a_form_too() {
    let account = Account::new().await;
    let id = account.heard_form(|form| form.max_submissions = Some(1)).await;
    let spam = account.submit(id, &["honeypot"]).await.unwrap();
    assert_eq!(account.closings().await, [""; 0], "spam takes no place");
    let mut tx = store::begin(&account.database.db).await.unwrap();
    let form = lock_form(&mut tx, account.id, id).await.unwrap().unwrap();
    let submission = find_submission(&mut tx, account.id, id, spam).await.unwrap().unwrap();
    let changed =
        update_status(&mut tx, account.id, &form, &submission, Status::Received, -1, &writer()).await;
    assert!(matches!(changed.unwrap(), UpdateOutcome::Done(..)));
    store::commit(tx).await.unwrap();
    assert_eq!(account.closings().await, ["full"]);
}

#[tokio::test]
async fn an_edit_that_closes_a_form_is_told_of_and_a_form_that_was_never_open_is_not() {
    let account = Account::new().await;
    let filled = account.heard_form(|_| {}).await;
    account.submit(filled, &[]).await.unwrap();
    let closed = account.heard_form(|_| {}).await;
    let _never_open = account.heard_form(|form| form.closes_at = Some(now() - TimeDelta::hours(1))).await;
    let _runner = account.run(&HURRY).await;
    account.edit(filled, |form| form.max_submissions = Some(1)).await;
    account.looked().await;
    assert_eq!(account.closings().await, ["full"]);
    account.edit(closed, |form| form.closes_at = Some(now())).await;
    account.looked().await;
    assert_eq!(account.closings().await, ["full", "closed"]);
}

#[tokio::test]
async fn a_form_that_its_accounts_plan_has_filled_is_not_closed_again_by_an_edit() {
    let account = Account::new().await;
    account.change("update accounts set plan = 'free'").await;
    let limit = Plan::Free.limits().submissions_per_form;
    let form = account.heard_form(|_| {}).await;
    account.change(&format!("update forms set submission_count = {} where id = '{form}'", limit - 1)).await;
    account.submit(form, &[]).await.unwrap();
    assert_eq!(account.closings().await, ["full"]);
    let _runner = account.run(&HURRY).await;
    account.edit(form, |form| form.max_submissions = Some(limit - 10)).await;
    account.looked().await;
    account.edit(form, |form| form.closes_at = Some(now())).await;
    account.looked().await;
    assert_eq!(account.closings().await, ["full"]);
}

#[tokio::test]
async fn a_form_that_is_full_when_its_time_comes_had_closed_before() {
    let account = Account::new().await;
    let form = account.heard_form(|form| {
        form.max_submissions = Some(1);
        form.closes_at = Some(now() + LATER);
    });
    let form = form.await;
    account.submit(form, &[]).await.unwrap();
    let _runner = account.run(&HURRY).await;
    account.let_time_come(form).await;
    assert_eq!(account.closings().await, ["full"]);
}
