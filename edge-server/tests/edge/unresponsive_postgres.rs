//! A Postgres that falls silent, its connections open: whoever submits by themselves is told in time, nothing stays locked
//! behind them, and whoever sends it again under its key learns what became of it.

use std::time::{Duration, Instant};

use futures::future::join_all;
use http::{Method, StatusCode};
use sandbox::test::until;
use serde_json::json;
use uuid::Uuid;

use crate::client::Answer;
use crate::fixtures::{Account, one_text_field, submit_path};
use crate::harness::Edge;

const WAIT: &str = "forms.lock_timeout=2s";
/// Twice that, and time for a busy machine.
const IN_TIME: Duration = Duration::from_secs(10);

async fn send(edge: &Edge, form: Uuid) -> Answer {
    let headers = [("content-type", "application/json"), ("idempotency-key", "order-17")];
    edge.visitor
        .send(Method::POST, "localhost", &submit_path(form), &headers, r#"{"a":"x"}"#.to_owned())
        .await
}

/// A form whose submissions are counted, and that the edge knows.
async fn counted(edge: &Edge, account: &Account<'_>) -> Uuid {
    let form = account.form(one_text_field()).await;
    assert_eq!(edge.visitor.post(&submit_path(form), &json!({"a": "w"})).await.status, StatusCode::CREATED);
    form
}

/// Whether that is so in Postgres, past what holds the edge's connections.
async fn is_so(edge: &Edge, condition: &str) -> bool {
    let assert = format!("do $$ begin assert {condition}; end $$");
    store::execute_raw(&edge.database.db, &assert).await.is_ok()
}

/// Makes storing take its time from now on, at that point of the transaction.
async fn slow_down(edge: &Edge, trigger: &str) {
    edge.run(&format!(
        "create function slow() returns trigger language plpgsql as
             $$ begin perform pg_sleep(2.5); return new; end $$;
         create {trigger} for each row execute function slow()"
    ))
    .await;
}

/// Falls silent while what is sent is being stored, at that point; gives what its sender is told.
async fn silent_at(edge: &Edge, sent: impl Future<Output = Answer>, trigger: &str) -> Answer {
    slow_down(edge, trigger).await;
    let falls_silent = async {
        let asleep =
            "select from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()";
        until(async || is_so(edge, &format!("exists ({asleep})")).await).await;
        edge.postgres.stall();
    };
    let began = Instant::now();
    let (answer, ()) = tokio::join!(sent, falls_silent);
    assert!(began.elapsed() < IN_TIME, "{:?}", began.elapsed());
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn single_submissions_time_out_while_postgres_hangs() {
    let edge = Edge::with(&[WAIT]).await;
    let account = edge.account("quiet-otter").await;
    let form = counted(&edge, &account).await;
    edge.postgres.stall();
    let began = Instant::now();
    let (path, answers) = (submit_path(form), json!({"a": "x"}));
    let plain = join_all((0..20).map(|_| edge.visitor.post(&path, &answers)));
    let (plain, keyed) = tokio::join!(plain, send(&edge, form));
    for answer in plain.into_iter().chain([keyed]) {
        answer.problem(503, "unavailable");
        assert!(!answer.header("retry-after").is_empty(), "nothing was stored");
    }
    assert!(began.elapsed() < IN_TIME, "{:?}", began.elapsed());
    edge.postgres.resume();
    assert_eq!(edge.visitor.post(&path, &answers).await.status, StatusCode::CREATED);
    assert_eq!(account.count(form).await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_transaction_is_rolled_back_and_releases_its_locks() {
    let edge = Edge::with(&[WAIT]).await;
    let account = edge.account("quiet-otter").await;
    let form = counted(&edge, &account).await;
    let answer = silent_at(&edge, send(&edge, form), "trigger slow before insert on submissions").await;
    answer.problem(503, "unavailable");
    assert!(!answer.header("retry-after").is_empty(), "nothing was stored");
    // Nothing gets through to Postgres yet, which ends by itself what it hears nothing more of.
    let locked = "select from pg_locks where relation = 'submissions'::regclass and pid <> pg_backend_pid()";
    until(async || is_so(&edge, &format!("not exists ({locked})")).await).await;
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
    let form = counted(&edge, &account).await;
    let at_commit = "constraint trigger slow after insert on submissions deferrable initially deferred";
    let answer = silent_at(&edge, send(&edge, form), at_commit).await;
    answer.problem(503, "unavailable");
    assert_eq!(answer.header("retry-after"), "", "it may have been stored");
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
    let form = counted(&edge, &account).await;
    slow_down(&edge, "trigger slow before insert on submissions").await;
    let submitting = [(); 2].map(|()| {
        let visitor = edge.visitor.clone();
        tokio::spawn(async move { visitor.post(&submit_path(form), &json!({"a": "x"})).await })
    });
    let waiting = "select count(*) from pg_stat_activity where datname = current_database()
                   and (wait_event = 'PgSleep' or wait_event_type = 'Lock')";
    until(async || is_so(&edge, &format!("({waiting}) = 2")).await).await;
    edge.postgres.stall_open_connections();
    submitting.iter().for_each(tokio::task::JoinHandle::abort);
    edge.run("drop trigger slow on submissions").await;
    until(async || {
        let answer = edge.visitor.post(&submit_path(form), &json!({"a": "y"})).await;
        answer.status == StatusCode::CREATED
    })
    .await;
    assert_eq!(account.count(form).await, 2, "those who hung up are not stored");
}

#[tokio::test(flavor = "multi_thread")]
async fn uploads_time_out_while_postgres_hangs() {
    let edge = Edge::with(&[WAIT]).await;
    let account = edge.account("quiet-otter").await;
    let form = account.form(json!([{"name": "photo", "label": "Photo", "type": "file"}])).await;
    let path = format!("/api/forms/{form}/upload");
    let wanted = json!({"field": "photo", "filename": "me.txt", "contentType": "text/plain", "sizeBytes": 5});
    let told = edge.visitor.post(&path, &wanted).await.json();
    let address = told["uploadUrl"].as_str().unwrap().split_once(&edge.port().to_string()).unwrap().1;
    let parts = "--xx\r\ncontent-disposition: form-data; name=\"photo\"; filename=\"me.txt\"\r\n\r\nhello\r\n--xx--\r\n";
    let headers = [("content-type", "multipart/form-data; boundary=xx"), ("accept", "application/json")];
    let submit = submit_path(form);
    edge.postgres.stall();
    let began = Instant::now();
    let (asked, sent, within) = tokio::join!(
        edge.visitor.post(&path, &wanted),
        edge.visitor.send(Method::PUT, "localhost", address, &[], "hello".to_owned()),
        edge.visitor.send(Method::POST, "localhost", &submit, &headers, parts.to_owned()),
    );
    for answer in [asked, sent, within] {
        answer.problem(503, "unavailable");
    }
    assert!(began.elapsed() < IN_TIME, "{:?}", began.elapsed());
    edge.postgres.resume();
    // Nothing was stored, which is why it may be sent again; but now it isn't heard of that it is.
    let at_commit = "constraint trigger slow after update on form_files deferrable initially deferred";
    let sending = edge.visitor.send(Method::PUT, "localhost", address, &[], "hello".to_owned());
    let sent = silent_at(&edge, sending, at_commit).await;
    sent.problem(503, "unavailable");
    assert_eq!(sent.header("retry-after"), "", "it may have been stored");
    until(async || is_so(&edge, "exists (select from form_files where blob_id is not null)").await).await;
}
