//! Runs are deleted with the submissions whose answers they hold, at the end of their retention, and before their
//! automation.

use super::{ACCOUNT, now};
use chrono::TimeDelta;
use domain::fields::Field;
use sandbox::test::{TestDatabase, automation, run_of, trial};
use serde_json::json;
use service::Rng;
use store::automations::{
    LockedRuns, NewRun, OverLimit, begin_deletion, delete_automation, delete_automation_runs,
    delete_ended_runs, insert_runs, list_ended_runs, lock_due_triggers,
};
use store::forms::{Form, delete_form, insert_form};
use store::submissions::{
    NewSubmission, SubmissionOutcome, WriteContext, delete_submissions_by_email, insert_submission,
};
use store::{Conn, Db};
use uuid::Uuid;

const OTHER: Uuid = Uuid::from_u128(2);
const FORM: Uuid = Uuid::from_u128(3);

fn new_id() -> Uuid {
    Rng::system().uuid_v7(now())
}

/// Two accounts, each with an automation of the same id as the account; that of the first is started by its form.
async fn database() -> TestDatabase {
    let database = sandbox::test::database().await;
    let fields: Vec<Field> =
        serde_json::from_value(json!([{"name": "mail", "label": "Mail", "type": "email"}])).unwrap();
    for account in [ACCOUNT, OTHER] {
        trial(&database, account, now()).await;
        let mut conn = store::acquire(&database.db).await.unwrap();
        let form_id = if account == ACCOUNT { FORM } else { new_id() };
        let form = Form::new(form_id, "Leads".to_owned(), fields.clone(), now());
        insert_form(&mut conn, account, &form).await.unwrap();
        automation(&database, account, account, Some(form_id), now()).await;
        for _ in 0..3 {
            submit(&database.db, account, form_id).await;
        }
    }
    database
}

async fn submit(db: &Db, account: Uuid, form_id: Uuid) {
    let mut tx = store::begin(db).await.unwrap();
    let form = store::forms::find_form(&mut tx, account, form_id).await.unwrap().unwrap();
    let payload = serde_json::from_value(json!({"mail": "ada@example.com"})).unwrap();
    let extra = serde_json::Map::new();
    let new = NewSubmission { id: new_id(), external_id: None, payload, extra, spam_reasons: Vec::new() };
    let outcome = insert_submission(&mut tx, account, &form, &new, -1, &context()).await.unwrap();
    assert!(matches!(outcome, SubmissionOutcome::Stored(_)), "{outcome:?}");
    store::commit(tx).await.unwrap();
}

fn context() -> WriteContext<'static> {
    WriteContext { now: now(), traceparent: None, depth: 0, new_id: &new_id }
}

/// Inserts the run of a submission, and a replay of it.
async fn insert(conn: &mut Conn, account: Uuid, submission_id: Option<Uuid>) {
    let run = NewRun {
        trigger_type: "form_submission",
        submission_id,
        source_submission_id: submission_id,
        ..run_of(account, new_id())
    };
    let replay = NewRun { id: new_id(), submission_id: None, ..run.clone() };
    insert_runs(conn, account, now(), -1, OverLimit::Refuse, &[run, replay]).await.unwrap();
}

async fn runs(db: &Db) -> i64 {
    sqlx::query_scalar("select count(*) from automation_runs").fetch_one(db).await.unwrap()
}

#[tokio::test]
async fn accounts_take_turns_and_an_erasure_waits_for_runs_that_are_being_inserted() {
    let database = database().await;
    let db = &database.db;
    let mut worker = store::begin(db).await.unwrap();
    let due = lock_due_triggers(&mut worker, 2).await.unwrap();
    let mut accounts: Vec<Uuid> = due.iter().map(|trigger| trigger.account_id).collect();
    accounts.sort_unstable();
    assert_eq!(accounts, [ACCOUNT, OTHER], "each has its share");
    let trigger = due.iter().find(|trigger| trigger.account_id == ACCOUNT).unwrap();
    insert(&mut worker, ACCOUNT, Some(trigger.submission_id)).await;
    let erasing = async {
        let mut tx = store::begin(db).await.unwrap();
        let erased = delete_submissions_by_email(
            &mut tx,
            ACCOUNT,
            FORM,
            &["ada@example.com".to_owned()],
            100,
            &context(),
        )
        .await;
        store::commit(tx).await.unwrap();
        erased.unwrap().unwrap().deleted
    };
    let committing = async {
        // The erasure waits for the trigger that the worker has locked.
        let waits = "select count(*) from pg_stat_activity where datname = current_database()
                     and wait_event_type = 'Lock'";
        sandbox::test::until(async || sqlx::query_scalar::<_, i64>(waits).fetch_one(db).await.unwrap() > 0)
            .await;
        store::commit(worker).await.unwrap();
    };
    let (deleted, ()) = tokio::join!(erasing, committing);
    assert_eq!(deleted, 3);
    assert_eq!(runs(db).await, 0, "neither the run nor its replay");
}

#[tokio::test]
async fn a_form_is_deleted_with_the_runs_of_its_submissions() {
    let database = database().await;
    let db = &database.db;
    let mut conn = store::acquire(db).await.unwrap();
    let due = lock_due_triggers(&mut conn, 100).await.unwrap();
    for trigger in due {
        insert(&mut conn, trigger.account_id, Some(trigger.submission_id)).await;
    }
    assert_eq!(runs(db).await, 12);
    let mut tx = store::begin(db).await.unwrap();
    assert!(delete_form(&mut tx, ACCOUNT, FORM).await.unwrap());
    store::commit(tx).await.unwrap();
    assert_eq!(runs(db).await, 6, "those of the other account");
}

#[tokio::test]
async fn retention_goes_by_the_end_and_by_account() {
    let database = database().await;
    let mut conn = store::acquire(&database.db).await.unwrap();
    for account in [ACCOUNT, OTHER] {
        insert(&mut conn, account, None).await;
    }
    assert!(list_ended_runs(&mut conn).await.unwrap().is_empty(), "none has ended");
    let end = "update automation_runs set due_at = null, status = 'success', finished_at = $1";
    sqlx::query(end).bind(now()).execute(&database.db).await.unwrap();
    let ended = list_ended_runs(&mut conn).await.unwrap();
    assert_eq!(
        ended.iter().map(|one| (one.account_id, one.oldest)).collect::<Vec<_>>(),
        [(ACCOUNT, now()), (OTHER, now())]
    );
    assert_eq!(delete_ended_runs(&mut conn, ACCOUNT, now(), 10).await.unwrap(), 0);
    let later = now() + TimeDelta::seconds(1);
    assert_eq!(delete_ended_runs(&mut conn, ACCOUNT, later, 10).await.unwrap(), 2);
    assert_eq!(runs(&database.db).await, 2);
}

#[tokio::test]
async fn an_automation_is_deleted_in_stages() {
    let database = database().await;
    let db = &database.db;
    let mut conn = store::acquire(db).await.unwrap();
    for account in [ACCOUNT, ACCOUNT, OTHER] {
        insert(&mut conn, account, None).await;
    }
    assert!(!begin_deletion(&mut conn, OTHER, ACCOUNT, now()).await.unwrap(), "of another account");
    assert!(begin_deletion(&mut conn, ACCOUNT, ACCOUNT, now()).await.unwrap());
    insert(&mut conn, ACCOUNT, None).await;
    assert_eq!(runs(db).await, 6, "it starts no more runs");

    let mut tx = store::begin(db).await.unwrap();
    let held = "select id from automation_runs where automation_id = $1 order by id limit 1 for update";
    let held: Uuid = sqlx::query_scalar(held).bind(ACCOUNT).fetch_one(&mut *tx).await.unwrap();
    let mut last = Uuid::nil();
    while let Some(id) = delete_automation_runs(&mut conn, ACCOUNT, last, LockedRuns::Skip, 2).await.unwrap()
    {
        assert!(id > last && id != held);
        last = id;
    }
    assert_eq!(runs(db).await, 3, "the locked one is left, and those of the other account");
    store::commit(tx).await.unwrap();
    let left = delete_automation_runs(&mut conn, ACCOUNT, Uuid::nil(), LockedRuns::Wait, 2).await.unwrap();
    assert_eq!(left, Some(held));
    assert!(delete_automation(&mut conn, ACCOUNT, ACCOUNT).await.unwrap());
    assert_eq!(runs(db).await, 2);
}
