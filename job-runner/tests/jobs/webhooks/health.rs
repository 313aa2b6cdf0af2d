//! The effect of deliveries on a webhook: failing, deactivation, and signing with replaced secrets.

use axum::body::Body;
use axum::response::Response;
use chrono::TimeDelta;
use domain::webhooks::{SECRET_PURPOSE, make_secret};
use sandbox::test::{eventually, until};
use serde_json::json;
use standardwebhooks::Webhook;
use store::deliveries::Delivery;
use uuid::Uuid;

use crate::fixture::account::{Account, SECRET, new_id, now, seal};
use crate::fixture::receiver::{Receiver, status};

impl Account {
    /// Inserts a ping that is due now.
    async fn ping(&self, webhook: Uuid) {
        let mut conn = store::acquire(&self.database.db).await.unwrap();
        let payload = json!({"type": "webhook.ping", "data": {}});
        let id = new_id();
        store::deliveries::insert_ping(&mut conn, self.id, webhook, id, &payload, None, now()).await.unwrap();
    }
}

fn is(state: &str) -> impl Fn(&Delivery) -> bool {
    move |delivery| delivery.state == state
}

#[tokio::test]
async fn a_receiver_that_is_gone_is_deactivated() {
    let account = Account::new().await;
    let receiver = Receiver::responding([status(410)]).await;
    let webhook = account.webhook(&receiver.url, None).await;
    account.submission().await;
    let running = account.run(&[]).await;
    let delivery = account.delivery_when(webhook, is("failed")).await;
    assert_eq!((delivery.attempts, delivery.status_code), (1, Some(410)));
    until(async || !account.read_webhook(webhook).await.is_active).await;
    let off = account.read_webhook(webhook).await;
    assert_eq!(off.deactivated_reason.as_deref(), Some("gone"));
    assert!(off.deactivated_at.is_some());
    running.stop().await;
    account.submission().await;
    assert_eq!(account.deliveries(webhook).await.len(), 1, "it gets no new deliveries");
}

#[tokio::test]
async fn pending_deliveries_of_a_webhook_that_is_gone_are_canceled() {
    let account = Account::new().await;
    let receiver = Receiver::responding([status(500), status(410)]).await;
    let webhook = account.webhook(&receiver.url, None).await;
    account.submission().await;
    let _running = account.run(&["webhooks.retry_schedule=[\"0s\",\"1h\"]"]).await;
    account.delivery_when(webhook, |delivery| delivery.attempts == 1 && delivery.status_code.is_some()).await;
    account.submission().await;
    eventually(async || {
        let mut states: Vec<_> = account.deliveries(webhook).await.into_iter().map(|one| one.state).collect();
        states.sort();
        (states == ["canceled", "failed"]).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_webhook_that_only_failed_for_five_days_is_deactivated_with_a_failed_delivery() {
    for (days, reason) in [(4, None), (6, Some("failing"))] {
        let account = Account::new().await;
        let receiver = Receiver::responding([status(500), status(500)]).await;
        let webhook = account.webhook(&receiver.url, None).await;
        account.submission().await;
        let set = format!("update webhooks set failing_since = now() - interval '{days} days'");
        account.change(&set).await;
        let running = account.run(&["webhooks.retry_schedule=[\"0s\",\"1ms\"]"]).await;
        let delivery = account.delivery_when(webhook, is("failed")).await;
        assert_eq!(delivery.attempts, 2, "the first failure does not deactivate it");
        // The service completes running work before it stops.
        running.stop().await;
        let now = account.read_webhook(webhook).await;
        assert_eq!(
            (now.is_active, now.deactivated_reason.as_deref()),
            (reason.is_none(), reason),
            "{days} days"
        );
    }
}

#[tokio::test]
async fn a_failure_sets_failing_since_and_a_delivery_clears_it() {
    let account = Account::new().await;
    let receiver = Receiver::responding([status(500)]).await;
    let webhook = account.webhook(&receiver.url, None).await;
    account.submission().await;
    let _running = account.run(&["webhooks.retry_schedule=[\"0s\",\"1h\"]"]).await;
    let failed = account.delivery_when(webhook, |delivery| delivery.status_code.is_some()).await;
    until(async || account.read_webhook(webhook).await.failing_since.is_some()).await;
    let mut conn = store::acquire(&account.database.db).await.unwrap();
    store::deliveries::retry_delivery(&mut conn, account.id, webhook, failed.id).await.unwrap();
    account.delivery_when(webhook, is("delivered")).await;
    until(async || account.read_webhook(webhook).await.failing_since.is_none()).await;
}

#[tokio::test]
async fn a_ping_is_tried_once_and_does_not_affect_the_webhooks_health() {
    let account = Account::new().await;
    let receiver = Receiver::responding([status(500)]).await;
    let webhook = account.webhook(&receiver.url, None).await;
    account.ping(webhook).await;
    let running = account.run(&["webhooks.retry_schedule=[\"0s\",\"1ms\"]"]).await;
    let delivery = account.delivery_when(webhook, is("failed")).await;
    assert_eq!((delivery.attempts, delivery.event.as_str()), (1, "webhook.ping"));
    running.stop().await;
    assert_eq!(account.read_webhook(webhook).await.failing_since, None);
    assert_eq!(receiver.received()[0].json()["type"], "webhook.ping");
}

#[tokio::test]
async fn a_manual_retry_restarts_the_whole_schedule() {
    let account = Account::new().await;
    let receiver = Receiver::responding([500, 500, 500].map(status)).await;
    let webhook = account.webhook(&receiver.url, None).await;
    account.submission().await;
    let _running = account.run(&["webhooks.retry_schedule=[\"0s\",\"1ms\"]"]).await;
    let failed = account.delivery_when(webhook, is("failed")).await;
    assert_eq!(failed.attempts, 2);
    let mut conn = store::acquire(&account.database.db).await.unwrap();
    assert!(store::deliveries::retry_delivery(&mut conn, account.id, webhook, failed.id).await.unwrap());
    let delivered = account.delivery_when(webhook, is("delivered")).await;
    assert_eq!((delivered.id, delivered.attempts), (failed.id, 4));
    let ids: Vec<_> =
        receiver.received().iter().map(|received| received.header("webhook-id").to_owned()).collect();
    assert_eq!(ids, vec![failed.id.to_string(); 4], "the delivery keeps its id");
}

#[tokio::test]
async fn both_secrets_sign_during_the_overlap_and_only_the_new_one_afterwards() {
    let account = Account::new().await;
    let receiver = Receiver::responding([]).await;
    let webhook = account.webhook(&receiver.url, None).await;
    let new_secret = make_secret(&[7; 24]);
    let sealed = seal(SECRET_PURPOSE, &new_secret);
    let mut conn = store::acquire(&account.database.db).await.unwrap();
    let until = now() + TimeDelta::hours(1);
    store::webhooks::update_secret(&mut conn, account.id, webhook, &sealed, until, now()).await.unwrap();
    let _running = account.run(&[]).await;
    for (signatures, old_is_valid) in [(2, true), (1, false)] {
        account.submission().await;
        let newest = eventually(async || {
            let deliveries = account.deliveries(webhook).await;
            deliveries.iter().all(is("delivered")).then(|| deliveries[0].id)
        })
        .await;
        let received = receiver.received();
        let one = received.iter().find(|one| one.header("webhook-id") == newest.to_string()).unwrap();
        assert_eq!(one.header("webhook-signature").split(' ').count(), signatures);
        let verify = |secret: &str| Webhook::new(secret).unwrap().verify(&one.body, &one.headers).is_ok();
        assert!(verify(&new_secret));
        assert_eq!(verify(SECRET), old_is_valid);
        account.change("update webhooks set previous_secret_until = now()").await;
    }
}

#[tokio::test]
async fn a_replaced_secret_is_deleted_after_its_overlap() {
    let account = Account::new().await;
    let hour = TimeDelta::hours(1);
    let (mut old, mut young) = (Uuid::nil(), Uuid::nil());
    let mut conn = store::acquire(&account.database.db).await.unwrap();
    for (webhook, until) in [(&mut old, now()), (&mut young, now() + hour)] {
        *webhook = account.webhook("https://example.com", None).await;
        let sealed = seal(SECRET_PURPOSE, &make_secret(&[7; 24]));
        let before = now() - hour;
        store::webhooks::update_secret(&mut conn, account.id, *webhook, &sealed, until, before)
            .await
            .unwrap();
    }
    let with_previous = async || {
        let rows = "select id from webhooks where sealed_previous_secret is not null";
        sqlx::query_scalar::<_, Uuid>(rows).fetch_all(&account.database.db).await.unwrap()
    };
    assert_eq!(with_previous().await.len(), 2);
    let _running = account.run(&["purge.poll_interval=20ms"]).await;
    until(async || with_previous().await == [young]).await;
}

#[tokio::test]
async fn a_delivery_in_flight_completes_after_its_webhook_was_deactivated() {
    let account = Account::new().await;
    let receiver = Receiver::stalled().await;
    let webhook = account.webhook(&receiver.url, None).await;
    account.submission().await;
    let _running = account.run(&[]).await;
    until(async || !receiver.received().is_empty()).await;
    let mut conn = store::acquire(&account.database.db).await.unwrap();
    let address = account.read_webhook(webhook).await.sealed_url;
    let other = (b"another".as_slice(), None);
    assert!(
        !store::webhooks::deactivate(&mut conn, account.id, webhook, "failing", now(), other).await.unwrap()
    );
    let seen = (address.as_slice(), None);
    assert!(
        store::webhooks::deactivate(&mut conn, account.id, webhook, "failing", now(), seen).await.unwrap()
    );
    assert_eq!(account.deliveries(webhook).await[0].state, "canceled");
    receiver.release();
    account.delivery_when(webhook, is("delivered")).await;
}

#[tokio::test]
async fn a_webhook_may_be_deleted_during_a_delivery() {
    let account = Account::new().await;
    let error_response = Response::builder().status(500).body(Body::empty()).unwrap();
    let receiver = Receiver::stalled_then([error_response]).await;
    let webhook = account.webhook(&receiver.url, None).await;
    account.submission().await;
    let running = account.run(&[]).await;
    until(async || !receiver.received().is_empty()).await;
    let mut conn = store::acquire(&account.database.db).await.unwrap();
    assert!(store::webhooks::delete_webhook(&mut conn, account.id, webhook).await.unwrap());
    receiver.release();
    running.stop().await;
    assert!(account.deliveries(webhook).await.is_empty());
}
