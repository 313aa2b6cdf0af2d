//! `Idempotency-Key` on submissions: a retry gets the recorded response and is stored once.

use contract::Change;
use futures::future::join_all;
use http::{Method, StatusCode};
use serde_json::json;

use crate::client::{TestResponse, Visitor};
use crate::fixtures::{one_text_field, submit_path};
use crate::harness::Edge;

async fn send(visitor: &Visitor, path: &str, key: &str, body: &str) -> TestResponse {
    let headers = [("content-type", "application/json"), ("idempotency-key", key)];
    visitor.send(Method::POST, "localhost", path, &headers, body.to_owned()).await
}

#[tokio::test]
async fn the_same_key_and_body_replay_the_first_response() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let form = account.form(one_text_field()).await;
    let path = submit_path(form);
    let first = send(&edge.visitor, &path, "order-17", "{\"a\":\"x\"}").await;
    assert_eq!((first.status, first.header("idempotent-replayed")), (StatusCode::CREATED, ""));
    let again = send(&edge.visitor, &path, "order-17", "{\"a\":\"x\"}").await;
    assert_eq!((again.status, again.header("idempotent-replayed")), (StatusCode::CREATED, "true"));
    assert_eq!(again.json(), first.json());
    assert_ne!(again.header("x-request-id"), first.header("x-request-id"));
    send(&edge.visitor, &path, "order-17", "{\"a\":\"y\"}").await.problem(409, "idempotency_mismatch");
    assert_eq!(send(&edge.visitor, &path, "order-18", "{\"a\":\"x\"}").await.status, StatusCode::CREATED);
    let other = submit_path(account.form(one_text_field()).await);
    assert_eq!(send(&edge.visitor, &other, "order-17", "{\"a\":\"z\"}").await.status, StatusCode::CREATED);
    assert_eq!(account.count(form).await, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_requests_with_one_key_store_one_submission() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let form = account.form(one_text_field()).await;
    let path = submit_path(form);
    let all = (0..40).map(|_| {
        let (visitor, path) = (edge.visitor.clone(), path.clone());
        async move { send(&visitor, &path, "once", "{\"a\":\"x\"}").await }
    });
    let mut ids = Vec::new();
    for response in join_all(all).await {
        if response.status == StatusCode::CREATED {
            ids.push(response.json()["submissionId"].clone());
        } else {
            response.problem(409, "conflict");
            assert_eq!(response.header("retry-after"), "1");
        }
    }
    assert!(!ids.is_empty());
    ids.dedup();
    assert_eq!((ids.len(), account.count(form).await), (1, 1));
}

#[tokio::test]
async fn a_rejection_is_not_recorded_and_can_be_corrected_under_its_key() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let form = account.form(one_text_field()).await;
    let path = submit_path(form);
    send(&edge.visitor, &path, "k", "{}").await.problem(400, "validation_failed");
    assert_eq!(send(&edge.visitor, &path, "k", "{\"a\":\"x\"}").await.status, StatusCode::CREATED);
    for wrong in ["", " ", "a b", &"k".repeat(256)] {
        let problem =
            send(&edge.visitor, &path, wrong, "{\"a\":\"x\"}").await.problem(400, "validation_failed");
        assert_eq!(problem["fieldErrors"][0]["field"], "Idempotency-Key", "{wrong}");
    }
    assert_eq!(account.submissions(form).await, [json!({"a": "x"})]);
}

#[tokio::test]
async fn a_response_is_replayed_until_its_key_expires() {
    let edge = Edge::with(&["forms.idempotency_ttl=1h"]).await;
    let account = edge.account("quiet-otter").await;
    let form = account.form(one_text_field()).await;
    let path = submit_path(form);
    assert_eq!(send(&edge.visitor, &path, "k", "{\"a\":\"x\"}").await.status, StatusCode::CREATED);
    edge.run("update idempotent_calls set created_at = now() - interval '2 hours'").await;
    let later = send(&edge.visitor, &path, "k", "{\"a\":\"x\"}").await;
    assert_eq!((later.status, later.header("idempotent-replayed")), (StatusCode::CREATED, ""));
    assert_eq!(account.count(form).await, 2);
    let again = send(&edge.visitor, &path, "k", "{\"a\":\"x\"}").await;
    assert_eq!(again.json()["submissionId"], later.json()["submissionId"]);
}

#[tokio::test]
async fn a_response_is_replayed_after_the_form_is_edited_or_closed() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let form = account.form(one_text_field()).await;
    let path = submit_path(form);
    let first = send(&edge.visitor, &path, "k", "{\"a\":\"x\"}").await;
    assert_eq!(first.status, StatusCode::CREATED);
    for edit in [
        "fields = '[{\"name\": \"b\", \"label\": \"B\", \"type\": \"number\", \"required\": true}]'",
        "closes_at = created_at",
    ] {
        edge.run(&format!("update forms set {edit}, updated_at = updated_at + interval '1 second'")).await;
        edge.publish_change(Change::Form { form_id: form }).await;
        // Uses a new key per attempt: submissions accepted before the edge has handled the signal are not replays.
        let mut keys = 0..;
        sandbox::test::until(async || {
            let key = format!("{}-{}", edit.len(), keys.next().unwrap_or_default());
            send(&edge.visitor, &path, &key, "{\"a\":\"x\"}").await.status != StatusCode::CREATED
        })
        .await;
        let again = send(&edge.visitor, &path, "k", "{\"a\":\"x\"}").await;
        assert_eq!(
            (again.status, again.header("idempotent-replayed")),
            (StatusCode::CREATED, "true"),
            "{edit}"
        );
        assert_eq!(again.json(), first.json());
        send(&edge.visitor, &path, "k", "{\"a\":\"y\"}").await.problem(409, "idempotency_mismatch");
    }
}
