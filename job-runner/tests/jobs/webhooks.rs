//! What deliveries show of a webhook: when it is given up, switched off, and under which secrets it is told.

use axum::body::Body;
use axum::response::Response;
use chrono::TimeDelta;
use domain::webhooks::{SECRET_PURPOSE, make_secret};
use sandbox::test::{eventually, until};
use serde_json::json;
use standardwebhooks::Webhook;
use store::deliveries::Delivery;
use uuid::Uuid;

use crate::harness::{Account, SECRET, new_id, now, seal};
use crate::receiver::{Receiver, status};

impl Account {
    /// A test of the webhook, due now.
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
async fn a_receiver_that_is_gone_is_not_called_again() {
    let account = Account::new().await;
    let receiver = Receiver::answering([status(410)]).await;
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
    assert_eq!(account.deliveries(webhook).await.len(), 1, "nothing is told to it any more");
}

#[tokio::test]
async fn what_waits_for_a_webhook_that_is_gone_is_taken_back() {
    let account = Account::new().await;
    let receiver = Receiver::answering([status(500), status(410)]).await;
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
async fn a_webhook_that_has_only_failed_for_five_days_is_switched_off_when_a_delivery_is_given_up() {
    for (days, reason) in [(4, None), (6, Some("failing"))] {
        let account = Account::new().await;
        let receiver = Receiver::answering([status(500), status(500)]).await;
        let webhook = account.webhook(&receiver.url, None).await;
        account.submission().await;
        let set = format!("update webhooks set failing_since = now() - interval '{days} days'");
        account.change(&set).await;
        let running = account.run(&["webhooks.retry_schedule=[\"0s\",\"1ms\"]"]).await;
        let delivery = account.delivery_when(webhook, is("failed")).await;
        assert_eq!(delivery.attempts, 2, "the first failure ends nothing");
        // It ends what it has begun.
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
async fn one_failure_begins_the_failing_and_one_delivery_ends_it() {
    let account = Account::new().await;
    let receiver = Receiver::answering([status(500)]).await;
    let webhook = account.webhook(&receiver.url, None).await;
    account.submission().await;
    let _running = account.run(&["webhooks.retry_schedule=[\"0s\",\"1h\"]"]).await;
    let failed = account.delivery_when(webhook, |delivery| delivery.status_code.is_some()).await;
    until(async || account.read_webhook(webhook).await.failing_since.is_some()).await;
    let mut conn = store::acquire(&account.database.db).await.unwrap();
    store::deliveries::retry_delivery(&mut conn, account.id, webhook, failed.id, now()).await.unwrap();
    account.delivery_when(webhook, is("delivered")).await;
    until(async || account.read_webhook(webhook).await.failing_since.is_none()).await;
}

#[tokio::test]
async fn a_test_is_tried_once_and_says_nothing_of_the_webhook() {
    let account = Account::new().await;
    let receiver = Receiver::answering([status(500)]).await;
    let webhook = account.webhook(&receiver.url, None).await;
    account.ping(webhook).await;
    let running = account.run(&["webhooks.retry_schedule=[\"0s\",\"1ms\"]"]).await;
    let delivery = account.delivery_when(webhook, is("failed")).await;
    assert_eq!((delivery.attempts, delivery.event.as_str()), (1, "webhook.ping"));
    running.stop().await;
    assert_eq!(account.read_webhook(webhook).await.failing_since, None);
    assert_eq!(receiver.taken()[0].json()["type"], "webhook.ping");
}

#[tokio::test]
async fn what_is_sent_again_by_hand_has_its_whole_schedule_again() {
    let account = Account::new().await;
    let receiver = Receiver::answering([500, 500, 500].map(status)).await;
    let webhook = account.webhook(&receiver.url, None).await;
    account.submission().await;
    let _running = account.run(&["webhooks.retry_schedule=[\"0s\",\"1ms\"]"]).await;
    let failed = account.delivery_when(webhook, is("failed")).await;
    assert_eq!(failed.attempts, 2);
    let mut conn = store::acquire(&account.database.db).await.unwrap();
    assert!(
        store::deliveries::retry_delivery(&mut conn, account.id, webhook, failed.id, now()).await.unwrap()
    );
    let delivered = account.delivery_when(webhook, is("delivered")).await;
    assert_eq!((delivered.id, delivered.attempts), (failed.id, 4));
    let ids: Vec<_> = receiver.taken().iter().map(|taken| taken.header("webhook-id").to_owned()).collect();
    assert_eq!(ids, vec![failed.id.to_string(); 4], "receivers know it by its id");
}

#[tokio::test]
async fn while_a_secret_is_replaced_both_sign_and_afterwards_only_the_new_one() {
    let account = Account::new().await;
    let receiver = Receiver::answering([]).await;
    let webhook = account.webhook(&receiver.url, None).await;
    let new_secret = make_secret(&[7; 24]);
    let sealed = seal(SECRET_PURPOSE, &new_secret);
    let mut conn = store::acquire(&account.database.db).await.unwrap();
    let until = now() + TimeDelta::hours(1);
    store::webhooks::update_secret(&mut conn, account.id, webhook, &sealed, until, now()).await.unwrap();
    let _running = account.run(&[]).await;
    for (signatures, old_is_good) in [(2, true), (1, false)] {
        account.submission().await;
        let newest = eventually(async || {
            let deliveries = account.deliveries(webhook).await;
            deliveries.iter().all(is("delivered")).then(|| deliveries[0].id)
        })
        .await;
        let taken = receiver.taken();
        let one = taken.iter().find(|one| one.header("webhook-id") == newest.to_string()).unwrap();
        assert_eq!(one.header("webhook-signature").split(' ').count(), signatures);
        let verify = |secret: &str| Webhook::new(secret).unwrap().verify(&one.body, &one.headers).is_ok();
        assert!(verify(&new_secret));
        assert_eq!(verify(SECRET), old_is_good);
        account.change("update webhooks set previous_secret_until = now()").await;
    }
}

#[tokio::test]
async fn a_secret_that_has_had_its_time_is_kept_nowhere() {
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
    let kept = async || {
        let rows = "select id from webhooks where sealed_previous_secret is not null";
        sqlx::query_scalar::<_, Uuid>(rows).fetch_all(&account.database.db).await.unwrap()
    };
    assert_eq!(kept().await.len(), 2);
    let _running = account.run(&["purge.poll_interval=20ms"]).await;
    until(async || kept().await == [young]).await;
}

#[tokio::test]
async fn what_arrives_after_its_webhook_was_switched_off_is_delivered_and_nothing_else_is() {
    let account = Account::new().await;
    let receiver = Receiver::silent().await;
    let webhook = account.webhook(&receiver.url, None).await;
    account.submission().await;
    let _running = account.run(&[]).await;
    until(async || !receiver.taken().is_empty()).await;
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
async fn a_webhook_may_be_deleted_while_it_is_told() {
    let account = Account::new().await;
    let refusal = Response::builder().status(500).body(Body::empty()).unwrap();
    let receiver = Receiver::silent_then([refusal]).await;
    let webhook = account.webhook(&receiver.url, None).await;
    account.submission().await;
    let running = account.run(&[]).await;
    until(async || !receiver.taken().is_empty()).await;
    let mut conn = store::acquire(&account.database.db).await.unwrap();
    assert!(store::webhooks::delete_webhook(&mut conn, account.id, webhook).await.unwrap());
    receiver.release();
    running.stop().await;
    assert!(account.deliveries(webhook).await.is_empty());
}
