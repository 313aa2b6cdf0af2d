//! Deliveries: sent until they are taken or the schedule is used up, each time as the same event, newly signed.

use std::collections::BTreeSet;

use axum::body::Body;
use axum::response::Response;
use chrono::TimeDelta;
use sandbox::test::until;
use serde_json::json;
use standardwebhooks::Webhook;
use store::deliveries::{Attempt, AttemptOutcome, Lease, complete_attempts};

use crate::harness::{Account, SECRET, lease, now};
use crate::receiver::{Receiver, status};

#[tokio::test]
async fn a_delivery_refused_twice_is_sent_again_as_the_same_event_newly_signed() {
    let account = Account::new().await;
    let receiver = Receiver::answering([status(500), status(503)]).await;
    let webhook = account.webhook(&receiver.url, None).await;
    account.submission().await;
    // A timestamp counts seconds: the pauses, less their spread of 20 %, are just over one.
    let _running = account.run(&["webhooks.retry_schedule=[\"0s\",\"1300ms\",\"1300ms\"]"]).await;
    let delivery = account.delivery_when(webhook, |delivery| delivery.state == "delivered").await;
    assert_eq!((delivery.attempts, delivery.status_code, delivery.error_class), (3, Some(200), None));

    let taken = receiver.taken();
    assert_eq!(taken.len(), 3);
    let verifier = Webhook::new(SECRET).unwrap();
    let distinct = |name: &str| taken.iter().map(|one| one.header(name)).collect::<BTreeSet<_>>().len();
    for one in &taken {
        assert_eq!(one.header("webhook-id"), delivery.id.to_string());
        assert_eq!(one.header("content-type"), "application/json");
        assert_eq!(one.body, taken[0].body);
        verifier.verify(&one.body, &one.headers).unwrap();
    }
    assert_eq!((distinct("webhook-timestamp"), distinct("webhook-signature")), (3, 3));
}

#[tokio::test]
async fn when_the_schedule_is_used_up_a_delivery_has_failed() {
    let account = Account::new().await;
    let receiver = Receiver::answering([500, 404, 302].map(status)).await;
    let webhook = account.webhook(&receiver.url, None).await;
    account.submission().await;
    let _running = account.run(&["webhooks.retry_schedule=[\"0s\",\"10ms\",\"10ms\"]"]).await;
    let delivery = account.delivery_when(webhook, |delivery| delivery.state == "failed").await;
    assert_eq!(
        (delivery.attempts, delivery.status_code),
        (3, Some(302)),
        "a redirect is an answer, not a way"
    );
    assert_eq!(delivery.error_class.as_deref(), Some("http_status"));
    assert_eq!(receiver.taken().len(), 3);
    let later = Lease { now: now() + TimeDelta::days(30), ..lease(now()) };
    assert_eq!(account.claim(&later).await.len(), 0);
}

#[tokio::test]
async fn a_receiver_that_asks_for_time_gets_it() {
    let account = Account::new().await;
    let date = httpdate::fmt_http_date((now() + TimeDelta::hours(2)).into());
    for (asked, hours) in [("3600", 1), (date.as_str(), 2), ("999999999999", 24)] {
        let answer =
            Response::builder().status(429).header("retry-after", asked).body(Body::empty()).unwrap();
        let receiver = Receiver::answering([answer]).await;
        let webhook = account.webhook(&receiver.url, None).await;
        account.submission().await;
        let running = account.run(&["webhooks.retry_schedule=[\"0s\",\"1s\"]"]).await;
        let tried = |delivery: &store::deliveries::Delivery| delivery.status_code == Some(429);
        let delivery = account.delivery_when(webhook, tried).await;
        let wait = delivery.next_attempt_at - now();
        let expected = TimeDelta::hours(hours);
        assert!(wait <= expected && wait > expected - TimeDelta::minutes(1), "{asked}: {wait}");
        running.stop().await;
        account.change("delete from webhooks").await;
    }
}

#[tokio::test]
async fn answers_go_out_under_the_names_the_webhook_gives_them() {
    let account = Account::new().await;
    let receiver = Receiver::answering([]).await;
    let webhook = account.webhook(&receiver.url, Some(json!({"email": "contact", "unknown": "x"}))).await;
    account.submission().await;
    let _running = account.run(&[]).await;
    account.delivery_when(webhook, |delivery| delivery.state == "delivered").await;
    let taken = receiver.taken().pop().unwrap();
    assert_eq!(taken.json()["data"]["fields"], json!({"contact": "a@b.co", "n": 1}));
    Webhook::new(SECRET).unwrap().verify(&taken.body, &taken.headers).unwrap();
}

#[tokio::test]
async fn of_a_receivers_answer_16_kib_are_kept_whatever_they_hold() {
    let account = Account::new().await;
    let with_nul = [b"begin\0".as_slice(), &b"x".repeat(100_000)].concat();
    let no_text = vec![0xff; 20_000];
    for body in [with_nul, no_text] {
        let receiver = Receiver::answering([Response::new(Body::from(body.clone()))]).await;
        let webhook = account.webhook(&receiver.url, None).await;
        account.submission().await;
        let running = account.run(&[]).await;
        let delivery = account.delivery_when(webhook, |delivery| delivery.state == "delivered").await;
        let kept = delivery.response_body.unwrap();
        assert!((16_000..=16 << 10).contains(&kept.len()), "{} bytes", kept.len());
        assert!(kept.starts_with(if body[0] == b'b' { "begin\u{fffd}x" } else { "\u{fffd}" }));
        running.stop().await;
        account.change("delete from webhooks").await;
    }
}

#[tokio::test]
async fn nobody_inside_is_called() {
    let account = Account::new().await;
    let receiver = Receiver::answering([]).await;
    let port = receiver.url.rsplit(':').next().unwrap().split('/').next().unwrap();
    let mut webhooks = Vec::new();
    for url in [
        receiver.url.clone(),
        format!("https://127.0.0.1:{port}/"),
        format!("https://[::ffff:127.0.0.1]:{port}/"),
        format!("https://localhost:{port}/"),
        "https://169.254.169.254/latest/meta-data".to_owned(),
    ] {
        webhooks.push(account.webhook(&url, None).await);
    }
    account.submission().await;
    let _running = account.run(&["outbound.allow=[]", "webhooks.retry_schedule=[\"0s\"]"]).await;
    for webhook in webhooks {
        let delivery = account.delivery_when(webhook, |delivery| delivery.state == "failed").await;
        assert_eq!(delivery.error_class.as_deref(), Some("refused_target"));
        assert_eq!((delivery.status_code, delivery.response_body), (None, None));
    }
    assert!(receiver.taken().is_empty());
}

#[tokio::test]
async fn a_webhook_that_is_off_is_not_called_even_of_what_was_left_behind() {
    let account = Account::new().await;
    let (receiver, other) = (Receiver::answering([]).await, Receiver::answering([]).await);
    let off = account.webhook(&receiver.url, None).await;
    let on = account.webhook(&other.url, None).await;
    account.submission().await;
    account.change(&format!("update webhooks set is_active = false where id = '{off}'")).await;
    let _running = account.run(&[]).await;
    account.delivery_when(on, |delivery| delivery.state == "delivered").await;
    let delivery = account.deliveries(off).await.pop().unwrap();
    assert_eq!((delivery.state.as_str(), delivery.attempts), ("pending", 0));
    assert!(receiver.taken().is_empty());
}

#[tokio::test]
async fn an_attempt_whose_worker_was_killed_is_made_again_after_its_lease() {
    let account = Account::new().await;
    let receiver = Receiver::answering([]).await;
    let webhook = account.webhook(&receiver.url, None).await;
    account.submission().await;
    let delivery = account.deliveries(webhook).await.pop().unwrap();
    let lease_ends = now() + TimeDelta::seconds(1);
    let killed = account.claim(&lease(lease_ends)).await.pop().unwrap();
    let _running = account.run(&[]).await;
    let delivered = account.delivery_when(webhook, |delivery| delivery.state == "delivered").await;
    assert!(now() >= lease_ends, "not before nobody else can be at it");
    assert_eq!((killed.attempt, delivered.attempts), (1, 2));
    let taken = receiver.taken();
    assert_eq!((taken.len(), taken[0].header("webhook-id")), (1, delivery.id.to_string().as_str()));
}

#[tokio::test]
async fn an_attempt_that_was_overtaken_decides_nothing() {
    let account = Account::new().await;
    let webhook = account.webhook("https://example.com", None).await;
    account.submission().await;
    let mut conn = store::acquire(&account.database.db).await.unwrap();
    let slow = account.claim(&lease(now())).await.pop().unwrap();
    let quick = account.claim(&lease(now())).await.pop().unwrap();
    assert_eq!((slow.attempt, quick.attempt), (1, 2));
    let ended = |attempt: &Attempt, error_class: Option<&'static str>| {
        let (status_code, duration_ms, response_body, next_attempt_at) = (None, 1, None, None);
        let outcome = AttemptOutcome {
            status_code,
            duration_ms,
            error_class,
            response_body,
            at: now(),
            next_attempt_at,
        };
        [(attempt.delivery_id, attempt.attempt, outcome)]
    };
    complete_attempts(&mut conn, &ended(&slow, Some("timeout"))).await.unwrap();
    assert_eq!(account.deliveries(webhook).await[0].state, "pending");
    complete_attempts(&mut conn, &ended(&quick, None)).await.unwrap();
    complete_attempts(&mut conn, &ended(&slow, Some("timeout"))).await.unwrap();
    assert_eq!(account.deliveries(webhook).await[0].state, "delivered");
}

#[tokio::test]
async fn a_delivery_that_can_not_be_opened_is_a_failed_attempt_like_others() {
    let account = Account::new().await;
    let webhook = account.webhook("https://example.com", None).await;
    account.submission().await;
    let other_key = format!("secrets.master_key={}", "cd".repeat(32));
    let running = account.run(&[&other_key, "webhooks.retry_schedule=[\"0s\",\"1h\"]"]).await;
    let tried = |delivery: &store::deliveries::Delivery| delivery.error_class.is_some();
    let delivery = account.delivery_when(webhook, tried).await;
    assert_eq!((delivery.error_class.as_deref(), delivery.attempts), (Some("unwritable"), 1));
    assert!(delivery.next_attempt_at > now() + TimeDelta::minutes(40), "it goes by the schedule");
    running.stop().await;
}

#[tokio::test]
async fn a_delivery_under_way_is_ended_before_the_service_is() {
    let account = Account::new().await;
    let receiver = Receiver::silent().await;
    let webhook = account.webhook(&receiver.url, None).await;
    account.submission().await;
    let running = account.run(&[]).await;
    until(async || !receiver.taken().is_empty()).await;
    running.ask_to_stop();
    receiver.release();
    running.stop().await;
    let delivery = account.deliveries(webhook).await.pop().unwrap();
    assert_eq!((delivery.state.as_str(), delivery.attempts), ("delivered", 1));
}
