//! A batch stores the same submissions as single inserts would, and waits for nothing.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::{ACCOUNT, OTHER, database, new_id, now};
use chrono::TimeDelta;
use contract::Signal;
use domain::plans::Plan;
use sandbox::test::automation;
use serde_json::{Value, json};
use store::automations::{delete_automation, disable_automation, lock_due_triggers};
use store::deliveries::lock_listeners;
use store::forms::{Form, OpenForm, find_form, find_open_form, insert_form, lock_form, update_form};
use store::submissions::{
    BatchSubmission, NewSubmission, SubmissionFilter, SubmissionOutcome, WriteContext, find_submission,
    insert_batch, insert_submission, list_submissions,
};
use store::webhooks::{NewWebhook, insert_webhook};
use tokio::task::JoinSet;
use uuid::Uuid;

async fn form(db: &store::Db, account_id: Uuid) -> Form {
    let fields = json!([{"name": "note", "label": "Note", "type": "text"}]);
    let form = Form::new(new_id(), "F".to_owned(), serde_json::from_value(fields).unwrap(), now());
    insert_form(&mut store::acquire(db).await.unwrap(), account_id, &form).await.unwrap();
    form
}

fn submission(note: &str) -> NewSubmission {
    let payload = json!({"note": note}).as_object().unwrap().clone();
    let extra = serde_json::Map::new();
    NewSubmission { id: new_id(), external_id: None, payload, extra, spam_reasons: Vec::new() }
}

fn plain(account_id: Uuid, form: &Form, note: &str) -> BatchSubmission {
    submission_with_listeners(account_id, form, note, 0)
}

/// A submission to send to `listeners` webhooks.
fn submission_with_listeners(account_id: Uuid, form: &Form, note: &str, listeners: i64) -> BatchSubmission {
    of(&OpenForm { listeners, ..open(account_id, form) }, &submission(note)).unwrap()
}

fn open(account_id: Uuid, form: &Form) -> OpenForm {
    OpenForm { account_id, plan: Plan::Scale, suspended: false, listeners: 0, form: form.clone() }
}

fn of(open: &OpenForm, new: &NewSubmission) -> Option<BatchSubmission> {
    BatchSubmission::of(
        open,
        new,
        &WriteContext { now: now(), traceparent: Some("00-1-2-01"), depth: 0, new_id: &new_id },
    )
}

async fn insert(db: &store::Db, all: &[BatchSubmission]) -> Vec<Uuid> {
    insert_batch(&mut store::acquire(db).await.unwrap(), all).await.unwrap().ids
}

async fn count(db: &store::Db, account_id: Uuid, form: &Form) -> i64 {
    let mut conn = store::acquire(db).await.unwrap();
    find_form(&mut conn, account_id, form.id).await.unwrap().unwrap().submission_count
}

async fn stored(db: &store::Db, account_id: Uuid, form: &Form) -> Vec<Value> {
    let mut conn = store::acquire(db).await.unwrap();
    let sought = SubmissionFilter { limit: 1_000_000, ..SubmissionFilter::default() };
    let rows = list_submissions(&mut conn, account_id, form.id, &sought).await.unwrap().rows;
    rows.into_iter().map(|row| Value::Object(row.payload)).collect()
}

/// Inserts a webhook of the account and returns its id.
async fn add_webhook(db: &store::Db, form_ids: Option<Vec<Uuid>>, events: &[&str]) -> Uuid {
    let webhook = NewWebhook {
        id: new_id(),
        sealed_url: vec![1],
        events: events.iter().map(|event| (*event).to_owned()).collect(),
        description: None,
        field_mapping: None,
        form_ids,
        sealed_secret: vec![2],
        created_at: now(),
        template: "default",
        telegram_chat_id: None,
    };
    insert_webhook(&mut store::acquire(db).await.unwrap(), ACCOUNT, &webhook).await.unwrap();
    webhook.id
}

/// Returns the deliveries as submission, webhook and payload.
async fn deliveries(db: &store::Db) -> Vec<(Uuid, Uuid, Value)> {
    sqlx::query_as(
        "select submission_id, webhook_id, payload from deliveries
         where account_id = $1 and event = 'submission.created' and traceparent = '00-1-2-01' order by 1, 2",
    )
    .bind(ACCOUNT)
    .fetch_all(db)
    .await
    .unwrap()
}

async fn edit(db: &store::Db, form: &Form, shape: impl FnOnce(&mut Form)) -> Form {
    let mut tx = store::begin(db).await.unwrap();
    let mut edited = lock_form(&mut tx, ACCOUNT, form.id).await.unwrap().unwrap();
    shape(&mut edited);
    update_form(&mut tx, ACCOUNT, &edited, now()).await.unwrap();
    let edited = find_form(&mut tx, ACCOUNT, form.id).await.unwrap().unwrap();
    store::commit(tx).await.unwrap();
    edited
}

#[tokio::test]
async fn stores_and_counts_submissions_of_many_forms_and_accounts() {
    let database = database().await;
    let db = &database.db;
    let (one, two, foreign) = (form(db, ACCOUNT).await, form(db, ACCOUNT).await, form(db, OTHER).await);
    let all = [
        plain(ACCOUNT, &one, "a"),
        plain(OTHER, &foreign, "b"),
        plain(ACCOUNT, &two, "c"),
        plain(ACCOUNT, &one, "é\u{1f600}\"\\{}"),
    ];
    let ids: Vec<Uuid> = all.iter().map(BatchSubmission::id).collect();
    let mut taken = insert(db, &all).await;
    taken.sort_by_key(|id| ids.iter().position(|known| known == id));
    assert_eq!(taken, ids);
    assert_eq!(insert(db, &[plain(ACCOUNT, &one, "later")]).await.len(), 1);
    let counts =
        [count(db, ACCOUNT, &one).await, count(db, ACCOUNT, &two).await, count(db, OTHER, &foreign).await];
    assert_eq!(counts, [3, 1, 1]);
    let notes = stored(db, ACCOUNT, &one).await;
    assert!(notes.contains(&json!({"note": "a"})) && notes.contains(&json!({"note": "é\u{1f600}\"\\{}"})));
    assert!(insert(db, &[]).await.is_empty(), "none at all is none");
}

#[tokio::test]
async fn skips_ineligible_submissions_and_only_those() {
    let database = database().await;
    let db = &database.db;
    let free = form(db, ACCOUNT).await;
    let (edited, closed, linked, deleted) =
        (form(db, ACCOUNT).await, form(db, ACCOUNT).await, form(db, ACCOUNT).await, form(db, ACCOUNT).await);
    let stale = plain(ACCOUNT, &edited, "x");
    edit(db, &edited, |form| form.unique_by = Some(vec!["note".to_owned()])).await;
    let closed = edit(db, &closed, |form| form.closes_at = Some(now())).await;
    let open = edit(db, &form(db, ACCOUNT).await, |form| {
        form.closes_at = Some(now() + TimeDelta::milliseconds(1));
    })
    .await;
    add_webhook(db, Some(vec![linked.id]), &[]).await;
    let of_deleted = plain(ACCOUNT, &deleted, "x");
    assert!(
        store::forms::delete_form(&mut store::acquire(db).await.unwrap(), ACCOUNT, deleted.id).await.unwrap()
    );
    let foreign = form(db, OTHER).await;
    let all = [
        stale,
        plain(ACCOUNT, &closed, "x"),
        plain(ACCOUNT, &linked, "x"),
        of_deleted,
        plain(ACCOUNT, &foreign, "x"),
        plain(ACCOUNT, &free, "x"),
        plain(ACCOUNT, &open, "x"),
    ];
    let mut taken = insert(db, &all).await;
    taken.sort_unstable();
    let mut expected = [all[5].id(), all[6].id()];
    expected.sort_unstable();
    assert_eq!(taken, expected);
    for form in [&edited, &closed, &linked] {
        assert_eq!((count(db, ACCOUNT, form).await, stored(db, ACCOUNT, form).await), (0, Vec::new()));
    }
    assert_eq!(count(db, OTHER, &foreign).await, 0);
}

#[tokio::test]
async fn creates_one_delivery_for_each_stored_submission_and_webhook() {
    let database = database().await;
    let db = &database.db;
    let (linked, other, foreign) = (form(db, ACCOUNT).await, form(db, ACCOUNT).await, form(db, OTHER).await);
    let (of_all, of_one) =
        (add_webhook(db, None, &["*"]).await, add_webhook(db, Some(vec![linked.id]), &[]).await);
    add_webhook(db, Some(vec![linked.id]), &["submission.deleted"]).await;
    let all = [
        submission_with_listeners(ACCOUNT, &linked, "a", 2),
        submission_with_listeners(ACCOUNT, &other, "b", 2),
        plain(OTHER, &foreign, "c"),
        submission_with_listeners(ACCOUNT, &linked, "d", 3),
    ];
    let mut conn = store::acquire(db).await.unwrap();
    let stored = insert_batch(&mut conn, &all).await.unwrap();
    assert_eq!(stored.ids.len(), 4);
    let mut heard_of = stored.webhook_ids;
    heard_of.sort_unstable();
    assert_eq!(heard_of, BTreeSet::from([of_all, of_one]).into_iter().collect::<Vec<_>>());
    let mut expected = Vec::new();
    for (place, webhooks) in [(0, vec![of_all, of_one]), (1, vec![of_all]), (3, vec![of_all, of_one])] {
        expected.extend(webhooks.into_iter().map(|webhook| (all[place].id(), webhook)));
    }
    expected.sort_unstable();
    let due = deliveries(db).await;
    assert_eq!(due.iter().map(|one| (one.0, one.1)).collect::<Vec<_>>(), expected);
    for (submission, _, payload) in due {
        assert_eq!(payload["type"], "submission.created");
        assert_eq!(payload["data"]["submissionId"], json!(submission));
    }
}

#[tokio::test]
async fn a_delivery_is_due_at_once_even_if_the_clock_of_its_edge_runs_ahead() {
    let database = database().await;
    let db = &database.db;
    let form = form(db, ACCOUNT).await;
    add_webhook(db, None, &["*"]).await;
    let ahead = "2999-01-01T00:00:00Z".parse().unwrap();
    let context = WriteContext { now: ahead, traceparent: Some("00-1-2-01"), depth: 0, new_id: &new_id };
    let open = OpenForm { listeners: 1, ..open(ACCOUNT, &form) };
    let in_batch = BatchSubmission::of(&open, &submission("a"), &context).unwrap();
    assert_eq!(insert(db, &[in_batch]).await.len(), 1);
    let mut tx = store::begin(db).await.unwrap();
    let single = insert_submission(&mut tx, ACCOUNT, &form, &submission("b"), -1, &context).await.unwrap();
    assert!(matches!(single, SubmissionOutcome::Stored(_)));
    store::commit(tx).await.unwrap();
    let due = "select count(*) from deliveries where next_attempt_at <= now() and created_at > now()";
    let due: i64 = sqlx::query_scalar(due).fetch_one(db).await.unwrap();
    assert_eq!((due, deliveries(db).await.len()), (2, 2), "by Postgres' clock");
}

#[tokio::test]
async fn all_statements_select_the_same_webhooks_for_an_event() {
    let database = database().await;
    let db = &database.db;
    let (linked, other) = (form(db, ACCOUNT).await, form(db, ACCOUNT).await);
    let events: [&[&str]; 5] =
        [&[], &["submission.created"], &["*"], &["form.closed"], &["form.closed", "submission.created"]];
    let mut all = Vec::new();
    for forms in [None, Some(vec![linked.id]), Some(vec![other.id])] {
        for events in events {
            all.push((add_webhook(db, forms.clone(), events).await, forms != Some(vec![other.id]), events));
        }
    }
    for change in ["is_active = false", &format!("account_id = '{OTHER}'")] {
        let id = add_webhook(db, None, &["*"]).await;
        store::execute_raw(db, &format!("update webhooks set {change} where id = '{id}'")).await.unwrap();
    }
    let receivers = |event: &str| -> BTreeSet<Uuid> {
        let matches = |events: &[&str]| match events {
            [] => event == "submission.created",
            some => some.contains(&event) || some.contains(&"*"),
        };
        all.iter().filter(|(_, receives, events)| *receives && matches(events)).map(|(id, ..)| *id).collect()
    };
    let mut tx = store::begin(db).await.unwrap();
    for event in ["submission.created", "submission.deleted", "form.closed"] {
        let listeners = lock_listeners(&mut tx, ACCOUNT, linked.id, event).await.unwrap();
        assert_eq!(listeners.iter().copied().collect::<BTreeSet<_>>(), receivers(event), "{event}");
        assert_eq!(listeners.len(), receivers(event).len(), "{event}: each once");
    }
    store::rollback(tx).await.unwrap();

    let explain = format!(
        "explain select w.id from webhooks w cross join wants(w.id, w.all_forms, w.events, '{}', 'form.closed')",
        linked.id
    );
    let plan: Vec<String> = sqlx::query_scalar(sqlx::AssertSqlSafe(explain)).fetch_all(db).await.unwrap();
    assert!(
        !plan.iter().any(|line| line.contains("Function Scan")),
        "it costs what its body does: {plan:#?}"
    );

    let receivers = receivers("submission.created");
    let mut conn = store::acquire(db).await.unwrap();
    let listeners = find_open_form(&mut conn, linked.id).await.unwrap().unwrap().listeners;
    assert_eq!(listeners, i64::try_from(receivers.len()).unwrap());
    let stored = insert_batch(&mut conn, &[submission_with_listeners(ACCOUNT, &linked, "x", listeners)])
        .await
        .unwrap();
    assert_eq!(stored.webhook_ids.into_iter().collect::<BTreeSet<_>>(), receivers);
    let mut tx = store::begin(db).await.unwrap();
    let writer = WriteContext { now: now(), traceparent: None, depth: 0, new_id: &new_id };
    let taken = insert_submission(&mut tx, ACCOUNT, &linked, &submission("x"), -1, &writer).await.unwrap();
    let notified = match taken {
        SubmissionOutcome::Stored(signals) => signals,
        _ => Vec::new(),
    };
    let notified = notified.into_iter().flat_map(|signal| match signal {
        Signal::DeliveriesDue { webhook_ids } => webhook_ids,
        _ => Vec::new(),
    });
    assert_eq!(notified.collect::<BTreeSet<_>>(), receivers);
    store::commit(tx).await.unwrap();
}

#[tokio::test]
async fn skips_submissions_with_new_or_deleted_webhooks() {
    let database = database().await;
    let db = &database.db;
    let (ending, new) = (form(db, ACCOUNT).await, form(db, ACCOUNT).await);
    let webhook = add_webhook(db, Some(vec![ending.id]), &[]).await;
    for _ in 0..2 {
        add_webhook(db, Some(vec![new.id]), &[]).await;
    }
    let mut end = store::begin(db).await.unwrap();
    sqlx::query("delete from webhooks where id = $1").bind(webhook).execute(&mut *end).await.unwrap();
    let all = [
        submission_with_listeners(ACCOUNT, &ending, "x", 1),
        submission_with_listeners(ACCOUNT, &new, "x", 1),
    ];
    let taken = tokio::time::timeout(Duration::from_secs(10), insert(db, &all)).await.unwrap();
    assert!(taken.is_empty() && deliveries(db).await.is_empty(), "{taken:?}");
    store::commit(end).await.unwrap();
    assert_eq!(insert(db, &all[..1]).await, [all[0].id()], "after the deletion there are no deliveries");
    assert!(deliveries(db).await.is_empty());
}

#[tokio::test]
async fn an_edited_form_and_a_deleted_account_delay_no_others() {
    let database = database().await;
    let db = &database.db;
    let (free, edited, ending) = (form(db, ACCOUNT).await, form(db, ACCOUNT).await, form(db, OTHER).await);
    let mut edit = store::begin(db).await.unwrap();
    lock_form(&mut edit, ACCOUNT, edited.id).await.unwrap().unwrap();
    let mut end = store::begin(db).await.unwrap();
    sqlx::query("select from accounts where id = $1 for update")
        .bind(OTHER)
        .execute(&mut *end)
        .await
        .unwrap();
    let all = [plain(ACCOUNT, &edited, "x"), plain(OTHER, &ending, "x"), plain(ACCOUNT, &free, "x")];
    let taken = tokio::time::timeout(Duration::from_secs(10), insert(db, &all)).await.unwrap();
    assert_eq!(taken, [all[2].id()]);
    store::rollback(edit).await.unwrap();
    store::rollback(end).await.unwrap();
    assert_eq!(insert(db, &all[..2]).await.len(), 2, "and when that is over they are taken");
}

/// The statement has a snapshot from its begin and gets the form's lock later. It must not miss what is committed in
/// between.
#[tokio::test(flavor = "multi_thread")]
async fn a_limit_set_under_load_is_never_exceeded() {
    let database = database().await;
    let form = form(&database.db, ACCOUNT).await;
    let done = Arc::new(AtomicBool::new(false));
    let submitting: JoinSet<usize> = (0..6)
        .map(|_| {
            let (db, form, done) = (database.db.clone(), form.clone(), Arc::clone(&done));
            async move {
                let (mut form, mut sum) = (form, 0);
                while !done.load(Ordering::Relaxed) {
                    let of_form = |note| of(&open(ACCOUNT, &form), &submission(note));
                    if let (Some(one), Some(other)) = (of_form("x"), of_form("y")) {
                        sum += insert(&db, &[one, other]).await.len();
                    }
                    let mut conn = store::acquire(&db).await.unwrap();
                    form = find_form(&mut conn, ACCOUNT, form.id).await.unwrap().unwrap();
                }
                sum
            }
        })
        .collect();
    let mut grown = 0;
    for _ in 0..60 {
        let full = edit(&database.db, &form, |form| form.max_submissions = Some(form.submission_count)).await;
        for _ in 0..5 {
            assert_eq!(
                count(&database.db, ACCOUNT, &form).await,
                full.submission_count,
                "it is as full as it was when the limit came"
            );
        }
        edit(&database.db, &form, |form| form.max_submissions = None).await;
        let before = grown;
        while grown == before {
            grown = count(&database.db, ACCOUNT, &form).await;
        }
    }
    done.store(true, Ordering::Relaxed);
    let sum: usize = submitting.join_all().await.into_iter().sum();
    assert_eq!(count(&database.db, ACCOUNT, &form).await, i64::try_from(sum).unwrap());
    assert_eq!(stored(&database.db, ACCOUNT, &form).await.len(), sum);
}

#[test]
fn submissions_with_further_effects_are_not_eligible() {
    let fields = json!([{"name": "note", "label": "Note", "type": "text"}]);
    let form = Form::new(new_id(), "F".to_owned(), serde_json::from_value(fields).unwrap(), now());
    let is_plain = |form: &Form, new: &NewSubmission| of(&open(ACCOUNT, form), new).is_some();
    assert!(is_plain(&form, &submission("x")));
    assert!(of(&OpenForm { plan: Plan::Free, ..open(ACCOUNT, &form) }, &submission("x")).is_none());
    let named = NewSubmission { external_id: Some("x".to_owned()), ..submission("x") };
    let spam = NewSubmission { spam_reasons: vec!["honeypot".to_owned()], ..submission("x") };
    assert!(!is_plain(&form, &named) && !is_plain(&form, &spam));
    let more: [fn(&mut Form); 4] = [
        |form| form.max_submissions = Some(1_000_000),
        |form| form.unique_by = Some(vec!["note".to_owned()]),
        |form| form.auto_entry_page_id = Some(Uuid::from_u128(9)),
        |form| form.notify_email = Some("owner@example.com".to_owned()),
    ];
    for shape in more {
        let mut form = form.clone();
        shape(&mut form);
        assert!(!is_plain(&form, &submission("x")));
    }
}

#[tokio::test]
async fn answers_to_unknown_fields_are_stored_with_their_submission_and_count_in_its_size() {
    let database = database().await;
    let form = form(&database.db, ACCOUNT).await;
    let extra = |text: &str| json!({"utm": text}).as_object().unwrap().clone();
    let open = open(ACCOUNT, &form);
    let with = of(&open, &NewSubmission { extra: extra("mail"), ..submission("x") }).unwrap();
    let without = of(&open, &submission("x")).unwrap();
    assert_eq!(with.bytes(), without.bytes() + r#"{"utm":"mail"}"#.len());
    let (with_id, without_id) = (with.id(), without.id());
    assert_eq!(insert(&database.db, &[without, with]).await.len(), 2);
    let mut conn = store::acquire(&database.db).await.unwrap();
    let mut find = async |id| find_submission(&mut conn, ACCOUNT, form.id, id).await.unwrap().unwrap();
    assert_eq!(find(with_id).await.extra, extra("mail"));
    assert_eq!(find(without_id).await.extra, serde_json::Map::new());
    let too_large = NewSubmission { extra: extra(&"x".repeat(64 << 10)), ..submission("x") };
    assert!(of(&open, &too_large).is_none());
}

#[tokio::test]
async fn a_submission_is_marked_to_start_the_enabled_automations_of_its_form_in_both_ways() {
    let database = database().await;
    let db = &database.db;
    let (starting, other) = (form(db, ACCOUNT).await, form(db, ACCOUNT).await);
    let (automations, disabled) = ([new_id(), new_id()], new_id());
    for id in automations.into_iter().chain([disabled]) {
        automation(&database, ACCOUNT, id, Some(starting.id), now()).await;
    }
    let (batched, single) = (plain(ACCOUNT, &starting, "x"), submission("y"));
    let batched_id = batched.id();

    let mut conn = store::acquire(db).await.unwrap();
    assert!(disable_automation(&mut conn, ACCOUNT, disabled, now()).await.unwrap());
    let stored = insert_batch(&mut conn, &[batched, plain(ACCOUNT, &other, "z")]).await.unwrap();
    assert!(stored.has_triggers);
    assert!(!insert_batch(&mut conn, &[plain(ACCOUNT, &other, "z")]).await.unwrap().has_triggers);
    let mut tx = store::begin(db).await.unwrap();
    let writer = WriteContext { now: now(), traceparent: None, depth: 0, new_id: &new_id };
    let outcome = insert_submission(&mut tx, ACCOUNT, &starting, &single, -1, &writer).await.unwrap();
    assert_eq!(outcome, SubmissionOutcome::Stored(vec![Signal::TriggersDue]));
    store::commit(tx).await.unwrap();

    let due = lock_due_triggers(&mut conn, 10).await.unwrap();
    let due: BTreeSet<_> =
        due.iter().map(|due| (due.submission_id, due.automation_id, due.depth, due.is_enabled)).collect();
    let expected = [batched_id, single.id]
        .into_iter()
        .flat_map(|submission| automations.map(|automation| (submission, automation, 0, true)));
    assert_eq!(due, expected.collect());
}

#[tokio::test]
async fn a_submission_does_not_wait_for_the_deletion_of_its_automation() {
    let database = database().await;
    let db = &database.db;
    let (starting, id) = (form(db, ACCOUNT).await, new_id());
    automation(&database, ACCOUNT, id, Some(starting.id), now()).await;
    let mut deleting = store::begin(db).await.unwrap();
    assert!(delete_automation(&mut deleting, ACCOUNT, id).await.unwrap());

    assert_eq!(insert(db, &[plain(ACCOUNT, &starting, "x")]).await.len(), 1);
    let mut tx = store::begin(db).await.unwrap();
    let writer = WriteContext { now: now(), traceparent: None, depth: 0, new_id: &new_id };
    let single = submission("y");
    let inserting = insert_submission(&mut tx, ACCOUNT, &starting, &single, -1, &writer);
    let outcome = tokio::time::timeout(Duration::from_secs(20), inserting).await.unwrap().unwrap();
    assert_eq!(outcome, SubmissionOutcome::Stored(vec![Signal::TriggersDue]));
    store::commit(tx).await.unwrap();

    let marks = async || {
        let statement = "select count(*) from automation_triggers";
        sqlx::query_scalar::<_, i64>(statement).fetch_one(db).await.unwrap()
    };
    assert_eq!(marks().await, 2);
    store::commit(deleting).await.unwrap();
    let mut conn = store::acquire(db).await.unwrap();
    assert_eq!(lock_due_triggers(&mut conn, 10).await.unwrap().len(), 0);
    assert_eq!(marks().await, 0);
}
