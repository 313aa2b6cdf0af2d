//! Postgres stops responding while its connections stay open: a single submission gets 503 in time, its locks are
//! released, and a retry under its idempotency key gets the real outcome.

use std::time::{Duration, Instant};

use futures::future::join_all;
use http::{Method, StatusCode};
use sandbox::test::until;
use serde_json::json;
use uuid::Uuid;

use crate::client::TestResponse;
use crate::fixtures::{Account, one_text_field, submit_path};
use crate::harness::Edge;

const WAIT: &str = "forms.lock_timeout=2s";
/// Twice the lock timeout, plus time for a busy machine.
const IN_TIME: Duration = Duration::from_secs(10);

async fn send(edge: &Edge, form: Uuid) -> TestResponse {
    let headers = [("content-type", "application/json"), ("idempotency-key", "order-17")];
    edge.visitor
        .send(Method::POST, "localhost", &submit_path(form), &headers, r#"{"a":"x"}"#.to_owned())
        .await
}

/// A form of an account with a submission limit, already in the edge's cache.
async fn limited_form(edge: &Edge, account: &Account<'_>) -> Uuid {
    let form = account.form(one_text_field()).await;
    assert_eq!(edge.visitor.post(&submit_path(form), &json!({"a": "w"})).await.status, StatusCode::CREATED);
    form
}

/// Whether the condition holds in Postgres, over a connection that does not pass the fault proxy.
async fn holds(edge: &Edge, condition: &str) -> bool {
    let assert = format!("do $$ begin assert {condition}; end $$");
    store::execute_raw(&edge.database.db, &assert).await.is_ok()
}

/// Delays every later submission at the trigger's point of the transaction.
async fn slow_down(edge: &Edge, trigger: &str) {
    edge.run(&format!(
        "create function slow() returns trigger language plpgsql as
             $$ begin perform pg_sleep(2.5); return new; end $$;
         create {trigger} for each row execute function slow()"
    ))
    .await;
}

/// Stalls Postgres while `sent` is in the transaction at the trigger's point. Returns the response.
async fn stalled_at(edge: &Edge, sent: impl Future<Output = TestResponse>, trigger: &str) -> TestResponse {
    slow_down(edge, trigger).await;
    let stall = async {
        let asleep =
            "select from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()";
        until(async || holds(edge, &format!("exists ({asleep})")).await).await;
        edge.postgres.stall();
    };
    let started = Instant::now();
    let (response, ()) = tokio::join!(sent, stall);
    assert!(started.elapsed() < IN_TIME, "{:?}", started.elapsed());
    response
}

#[tokio::test(flavor = "multi_thread")]
async fn single_submissions_time_out_while_postgres_hangs() {
    let edge = Edge::with(&[WAIT]).await;
    let account = edge.account("quiet-otter").await;
    let form = limited_form(&edge, &account).await;
    edge.postgres.stall();
    let started = Instant::now();
    let (path, answers) = (submit_path(form), json!({"a": "x"}));
    let plain = join_all((0..20).map(|_| edge.visitor.post(&path, &answers)));
    let (plain, keyed) = tokio::join!(plain, send(&edge, form));
    for response in plain.into_iter().chain([keyed]) {
        response.problem(503, "unavailable");
        assert!(!response.header("retry-after").is_empty(), "not stored, so the client may retry");
    }
    assert!(started.elapsed() < IN_TIME, "{:?}", started.elapsed());
    edge.postgres.resume();
    assert_eq!(edge.visitor.post(&path, &answers).await.status, StatusCode::CREATED);
    assert_eq!(account.count(form).await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_transaction_is_rolled_back_and_releases_its_locks() {
    let edge = Edge::with(&[WAIT]).await;
    let account = edge.account("quiet-otter").await;
    let form = limited_form(&edge, &account).await;
    let response = stalled_at(&edge, send(&edge, form), "trigger slow before insert on submissions").await;
    response.problem(503, "unavailable");
    assert!(!response.header("retry-after").is_empty(), "not stored, so the client may retry");
    // The proxy is still stalled: Postgres ends the silent transaction by its own timeout.
    let locked = "select from pg_locks where relation = 'submissions'::regclass and pid <> pg_backend_pid()";
    until(async || holds(&edge, &format!("not exists ({locked})")).await).await;
    edge.run("drop trigger slow on submissions").await;
    edge.postgres.resume();
    let again = send(&edge, form).await;
    assert_eq!((again.status, again.header("idempotent-replayed")), (StatusCode::CREATED, ""));
    assert_eq!(account.count(form).await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_with_a_lost_reply_is_replayed_under_its_key() {
    let edge = Edge::with(&[WAIT]).await;
    let account = edge.account("quiet-otter").await;
    let form = limited_form(&edge, &account).await;
    let at_commit = "constraint trigger slow after insert on submissions deferrable initially deferred";
    let response = stalled_at(&edge, send(&edge, form), at_commit).await;
    response.problem(503, "unavailable");
    assert_eq!(response.header("retry-after"), "", "the outcome is unknown, so no Retry-After");
    until(async || account.count(form).await == 2).await;
    edge.postgres.resume();
    let again = send(&edge, form).await;
    assert_eq!((again.status, again.header("idempotent-replayed")), (StatusCode::CREATED, "true"));
    assert_eq!((account.count(form).await, account.submissions(form).await.len()), (2, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_request_frees_its_dead_database_connection() {
    let edge = Edge::with(&[WAIT, "store.max_connections=2"]).await;
    let account = edge.account("quiet-otter").await;
    let form = limited_form(&edge, &account).await;
    slow_down(&edge, "trigger slow before insert on submissions").await;
    let submitting = [(); 2].map(|()| {
        let visitor = edge.visitor.clone();
        tokio::spawn(async move { visitor.post(&submit_path(form), &json!({"a": "x"})).await })
    });
    let waiting = "select count(*) from pg_stat_activity where datname = current_database()
                   and (wait_event = 'PgSleep' or wait_event_type = 'Lock')";
    until(async || holds(&edge, &format!("({waiting}) = 2")).await).await;
    edge.postgres.stall_open_connections();
    submitting.iter().for_each(tokio::task::JoinHandle::abort);
    edge.run("drop trigger slow on submissions").await;
    until(async || {
        let response = edge.visitor.post(&submit_path(form), &json!({"a": "y"})).await;
        response.status == StatusCode::CREATED
    })
    .await;
    assert_eq!(account.count(form).await, 2, "cancelled submissions are not stored");
}

#[tokio::test(flavor = "multi_thread")]
async fn uploads_time_out_while_postgres_hangs() {
    let edge = Edge::with(&[WAIT]).await;
    let account = edge.account("quiet-otter").await;
    let form = account.form(json!([{"name": "photo", "label": "Photo", "type": "file"}])).await;
    let path = format!("/api/forms/{form}/upload");
    let announcement =
        json!({"field": "photo", "filename": "me.txt", "contentType": "text/plain", "sizeBytes": 5});
    let announced = edge.visitor.post(&path, &announcement).await.json();
    let address = announced["uploadUrl"].as_str().unwrap().split_once(&edge.port().to_string()).unwrap().1;
    let parts = "--xx\r\ncontent-disposition: form-data; name=\"photo\"; filename=\"me.txt\"\r\n\r\nhello\r\n--xx--\r\n";
    let headers = [("content-type", "multipart/form-data; boundary=xx"), ("accept", "application/json")];
    let submit = submit_path(form);
    edge.postgres.stall();
    let started = Instant::now();
    let (announcement, upload, multipart) = tokio::join!(
        edge.visitor.post(&path, &announcement),
        edge.visitor.send(Method::PUT, "localhost", address, &[], "hello".to_owned()),
        edge.visitor.send(Method::POST, "localhost", &submit, &headers, parts.to_owned()),
    );
    for response in [announcement, upload, multipart] {
        response.problem(503, "unavailable");
    }
    assert!(started.elapsed() < IN_TIME, "{:?}", started.elapsed());
    edge.postgres.resume();
    // The first upload was not stored, so it may be retried. This time Postgres commits, but the reply is lost.
    let at_commit = "constraint trigger slow after update on form_files deferrable initially deferred";
    let sending = edge.visitor.send(Method::PUT, "localhost", address, &[], "hello".to_owned());
    let sent = stalled_at(&edge, sending, at_commit).await;
    sent.problem(503, "unavailable");
    assert_eq!(sent.header("retry-after"), "", "the outcome is unknown, so no Retry-After");
    until(async || holds(&edge, "exists (select from form_files where blob_id is not null)").await).await;
}
