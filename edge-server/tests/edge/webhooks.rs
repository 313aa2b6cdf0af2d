//! Webhook deliveries of a submission: committed with it, and only for the webhooks that match.

use std::collections::BTreeSet;
use std::time::Duration;

use http::StatusCode;
use serde_json::json;
use store::deliveries::{ClaimLimit, Lease, claim};

use crate::fixtures::{now, one_text_field, submit_path};
use crate::harness::Edge;

#[tokio::test]
async fn deliveries_are_due_when_the_response_arrives() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let form = account.form(one_text_field()).await;
    let all = account.webhook(None, &[]).await;
    let linked = account.webhook(Some(vec![form]), &["submission.created"]).await;
    let response = edge.visitor.post(&submit_path(form), &json!({"a": "x"})).await;
    assert_eq!(response.status, StatusCode::CREATED);
    for webhook in [all, linked] {
        let delivery = account.deliveries(webhook).await.pop().unwrap();
        assert_eq!((delivery.event.as_str(), delivery.state.as_str()), ("submission.created", "pending"));
    }
    let mut conn = store::acquire(&edge.database.db).await.unwrap();
    let lease = Lease { now: now(), until: now() + Duration::from_secs(60) };
    let limits = [all, linked].map(|webhook_id| ClaimLimit { webhook_id, limit: 10 });
    let mut claimed = claim(&mut conn, &lease, &limits).await.unwrap();
    assert_eq!(
        claimed.iter().map(|one| one.webhook_id).collect::<BTreeSet<_>>(),
        BTreeSet::from([all, linked])
    );
    let attempt = claimed.pop().unwrap();
    assert_eq!(attempt.payload["type"], "submission.created");
    let data = &attempt.payload["data"];
    assert_eq!(data["submissionId"], response.json()["submissionId"]);
    assert_eq!((&data["formId"], &data["formName"]), (&json!(form), &json!("Contact")));
    assert_eq!((&data["fields"], &data["externalId"]), (&json!({"a": "x"}), &json!(null)));
}

#[tokio::test]
async fn unrelated_webhooks_get_no_delivery() {
    let edge = Edge::start().await;
    let (account, stranger) = (edge.account("quiet-otter").await, edge.account("loud-badger").await);
    let (form, other) = (account.form(one_text_field()).await, account.form(one_text_field()).await);
    let inactive = account.webhook(None, &[]).await;
    edge.run(&format!("update webhooks set is_active = false where id = '{inactive}'")).await;
    let of_another_form = account.webhook(Some(vec![other]), &[]).await;
    let of_no_form = account.webhook(Some(vec![]), &[]).await;
    let of_another_event = account.webhook(None, &["submission.deleted"]).await;
    let of_another_account = stranger.webhook(None, &["*"]).await;
    let stolen = stranger.webhook(Some(vec![form]), &["*"]).await;
    assert_eq!(edge.visitor.post(&submit_path(form), &json!({"a": "x"})).await.status, StatusCode::CREATED);
    for webhook in [inactive, of_another_form, of_no_form, of_another_event] {
        assert!(account.deliveries(webhook).await.is_empty());
    }
    for webhook in [of_another_account, stolen] {
        assert!(stranger.deliveries(webhook).await.is_empty());
    }
}

#[tokio::test]
async fn a_rejected_submission_creates_no_delivery() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let webhook = account.webhook(None, &["*"]).await;
    let closed = account.form_with(one_text_field(), |form| form.closes_at = Some(now())).await;
    let open = account.form(one_text_field()).await;
    edge.visitor.post(&submit_path(closed), &json!({"a": "x"})).await.problem(410, "form_closed");
    edge.visitor.post(&submit_path(open), &json!({})).await.problem(400, "validation_failed");
    assert!(account.deliveries(webhook).await.is_empty());
}

#[tokio::test]
async fn the_response_does_not_wait_for_a_hanging_redis() {
    // The kernel accepts connections, but no process replies on them.
    let hanging = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let edge = Edge::with(&[&format!("redis.url=redis://{}", hanging.local_addr().unwrap())]).await;
    let account = edge.account("quiet-otter").await;
    let form = account.form(one_text_field()).await;
    let webhook = account.webhook(None, &[]).await;
    edge.visitor.get("localhost", &format!("/f/{form}")).await;
    let started = std::time::Instant::now();
    let response = edge.visitor.post(&submit_path(form), &json!({"a": "x"})).await;
    assert_eq!(response.status, StatusCode::CREATED);
    // The bus has a timeout of two seconds.
    assert!(started.elapsed() < std::time::Duration::from_millis(1_800), "{:?}", started.elapsed());
    assert_eq!(account.deliveries(webhook).await.len(), 1);
}
