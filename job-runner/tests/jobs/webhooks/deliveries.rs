//! Deliveries are retried until a receiver accepts them or the schedule is exhausted: the same event, newly signed.

use std::collections::BTreeSet;

use axum::body::Body;
use axum::response::Response;
use chrono::TimeDelta;
use sandbox::test::until;
use serde_json::json;
use standardwebhooks::Webhook;
use store::deliveries::{Attempt, AttemptOutcome, Lease, complete_attempts};

use crate::fixture::account::{Account, SECRET, lease, now};
use crate::fixture::metrics::metric;
use crate::fixture::receiver::{Receiver, status};

#[tokio::test]
async fn a_refused_delivery_is_retried_with_the_same_event_and_a_new_signature() {
    let account = Account::new().await;
    let receiver = Receiver::responding([status(500), status(503)]).await;
    let webhook = account.webhook(&receiver.url, None).await;
    account.submission().await;
    // Timestamps have a resolution of one second: each delay less 20 % jitter is just longer.
    let _running = account.run(&["webhooks.retry_schedule=[\"0s\",\"1300ms\",\"1300ms\"]"]).await;
    let delivery = account.delivery_when(webhook, |delivery| delivery.state == "delivered").await;
    assert_eq!((delivery.attempts, delivery.status_code, delivery.error_class), (3, Some(200), None));

    let received = receiver.received();
    assert_eq!(received.len(), 3);
    let verifier = Webhook::new(SECRET).unwrap();
    let distinct = |name: &str| received.iter().map(|one| one.header(name)).collect::<BTreeSet<_>>().len();
    for one in &received {
        assert_eq!(one.header("webhook-id"), delivery.id.to_string());
        assert_eq!(one.header("content-type"), "application/json");
        assert_eq!(one.body, received[0].body);
        verifier.verify(&one.body, &one.headers).unwrap();
    }
    assert_eq!((distinct("webhook-timestamp"), distinct("webhook-signature")), (3, 3));
}

#[tokio::test]
async fn a_delivery_fails_when_its_schedule_is_exhausted() {
    let account = Account::new().await;
    let receiver = Receiver::responding([500, 404, 302].map(status)).await;
    let webhook = account.webhook(&receiver.url, None).await;
    account.submission().await;
    let _running = account.run(&["webhooks.retry_schedule=[\"0s\",\"10ms\",\"10ms\"]"]).await;
    let delivery = account.delivery_when(webhook, |delivery| delivery.state == "failed").await;
    assert_eq!(
        (delivery.attempts, delivery.status_code),
        (3, Some(302)),
        "a redirect is a response and not followed"
    );
    assert_eq!(delivery.error_class.as_deref(), Some("http_status"));
    assert_eq!(receiver.received().len(), 3);
    let later = Lease { now: now() + TimeDelta::days(30), ..lease(now()) };
    assert_eq!(account.claim(&later).await.len(), 0);
}

#[tokio::test]
async fn retry_after_is_honored() {
    let account = Account::new().await;
    let date = httpdate::fmt_http_date((now() + TimeDelta::hours(2)).into());
    for (retry_after, hours) in [("3600", 1), (date.as_str(), 2), ("999999999999", 24)] {
        let response =
            Response::builder().status(429).header("retry-after", retry_after).body(Body::empty()).unwrap();
        let receiver = Receiver::responding([response]).await;
        let webhook = account.webhook(&receiver.url, None).await;
        account.submission().await;
        let running = account.run(&["webhooks.retry_schedule=[\"0s\",\"1s\"]"]).await;
        let tried = |delivery: &store::deliveries::Delivery| delivery.status_code == Some(429);
        let delivery = account.delivery_when(webhook, tried).await;
        // By the service's clock, which follows Postgres' and not this process'.
        let wait = delivery.next_attempt_at - delivery.attempted_at.unwrap();
        let expected = TimeDelta::hours(hours);
        assert!(wait <= expected && wait > expected - TimeDelta::minutes(1), "{retry_after}: {wait}");
        running.stop().await;
        account.change("delete from webhooks").await;
    }
}

#[tokio::test]
async fn fields_are_renamed_by_the_webhooks_field_mapping() {
    let account = Account::new().await;
    let receiver = Receiver::responding([]).await;
    let webhook = account.webhook(&receiver.url, Some(json!({"email": "contact", "unknown": "x"}))).await;
    account.submission().await;
    let _running = account.run(&[]).await;
    account.delivery_when(webhook, |delivery| delivery.state == "delivered").await;
    let received = receiver.received().pop().unwrap();
    assert_eq!(received.json()["data"]["fields"], json!({"contact": "a@b.co", "n": 1}));
    Webhook::new(SECRET).unwrap().verify(&received.body, &received.headers).unwrap();
}

#[tokio::test]
async fn the_first_16_kib_of_a_response_are_stored_whatever_they_contain() {
    let account = Account::new().await;
    let with_nul = [b"begin\0".as_slice(), &b"x".repeat(100_000)].concat();
    let invalid_utf8 = vec![0xff; 20_000];
    for body in [with_nul, invalid_utf8] {
        let receiver = Receiver::responding([Response::new(Body::from(body.clone()))]).await;
        let webhook = account.webhook(&receiver.url, None).await;
        account.submission().await;
        let running = account.run(&[]).await;
        let delivery = account.delivery_when(webhook, |delivery| delivery.state == "delivered").await;
        let stored = delivery.response_body.unwrap();
        assert!((16_000..=16 << 10).contains(&stored.len()), "{} bytes", stored.len());
        assert!(stored.starts_with(if body[0] == b'b' { "begin\u{fffd}x" } else { "\u{fffd}" }));
        running.stop().await;
        account.change("delete from webhooks").await;
    }
}

#[tokio::test]
async fn internal_addresses_are_not_called() {
    let account = Account::new().await;
    let receiver = Receiver::responding([]).await;
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
    assert!(receiver.received().is_empty());
}

#[tokio::test]
async fn a_webhook_on_an_own_address_fails_for_good_and_is_not_called() {
    let account = Account::new().await;
    let receiver = Receiver::responding([]).await;
    let port = receiver.url.rsplit(':').next().unwrap().split('/').next().unwrap();
    account.verified_domain("shop.example").await;
    let base_url = format!("http.base_url=http://localhost:{port}");
    let own = [
        format!("http://localhost:{port}/api/forms/x/submit"),
        receiver.url.clone(),
        format!("http://a-b.localhost:{port}/"),
        format!("https://shop.example:{port}/"),
    ];
    let mut webhooks = Vec::new();
    for url in &own {
        webhooks.push(account.webhook(url, None).await);
    }
    account.submission().await;
    let local =
        [&*base_url, "http.sites_domain=localhost", "outbound.allow=[\"127.0.0.0/8\", \"*.localhost\"]"];
    let _running = account.run(&local).await;
    for (webhook, url) in webhooks.into_iter().zip(own) {
        let delivery = account.delivery_when(webhook, |delivery| delivery.state == "failed").await;
        assert_eq!((delivery.error_class.as_deref(), delivery.attempts), (Some("own_address"), 1), "{url}");
    }
    assert!(receiver.received().is_empty());
}

#[tokio::test]
async fn a_receiver_on_another_port_of_localhost_gets_the_depth_of_the_delivery() {
    let account = Account::new().await;
    let receiver = Receiver::responding([]).await;
    let webhook = account.webhook(&receiver.url, None).await;
    account.submission().await;
    let _running = account.run(&["http.base_url=http://localhost:8080", "http.sites_domain=localhost"]).await;
    account.delivery_when(webhook, |delivery| delivery.state == "delivered").await;
    assert_eq!(receiver.received().pop().unwrap().header("webruntime-depth"), "1");
    account.change("update deliveries set depth = 4, state = 'pending', next_attempt_at = now()").await;
    until(async || receiver.received().last().unwrap().header("webruntime-depth") == "4").await;
}

#[tokio::test]
async fn an_inactive_webhook_is_not_called_also_for_its_pending_deliveries() {
    let account = Account::new().await;
    let (receiver, other) = (Receiver::responding([]).await, Receiver::responding([]).await);
    let inactive = account.webhook(&receiver.url, None).await;
    let active = account.webhook(&other.url, None).await;
    account.submission().await;
    account.change(&format!("update webhooks set is_active = false where id = '{inactive}'")).await;
    let _running = account.run(&[]).await;
    account.delivery_when(active, |delivery| delivery.state == "delivered").await;
    let delivery = account.deliveries(inactive).await.pop().unwrap();
    assert_eq!((delivery.state.as_str(), delivery.attempts), ("pending", 0));
    assert!(receiver.received().is_empty());
}

#[tokio::test]
async fn the_attempt_of_a_killed_worker_is_repeated_after_its_lease() {
    let account = Account::new().await;
    let receiver = Receiver::responding([]).await;
    let webhook = account.webhook(&receiver.url, None).await;
    account.submission().await;
    let delivery = account.deliveries(webhook).await.pop().unwrap();
    let lease_ends = now() + TimeDelta::seconds(1);
    let killed = account.claim(&lease(lease_ends)).await.pop().unwrap();
    let _running = account.run(&[]).await;
    let delivered = account.delivery_when(webhook, |delivery| delivery.state == "delivered").await;
    assert!(now() >= lease_ends, "not before the lease expires");
    assert_eq!((killed.attempt, delivered.attempts), (1, 2));
    let received = receiver.received();
    assert_eq!((received.len(), received[0].header("webhook-id")), (1, delivery.id.to_string().as_str()));
}

#[tokio::test]
async fn the_result_of_an_outdated_attempt_is_ignored() {
    let account = Account::new().await;
    let webhook = account.webhook("https://example.com", None).await;
    account.submission().await;
    let mut conn = store::acquire(&account.database.db).await.unwrap();
    let slow = account.claim(&lease(now())).await.pop().unwrap();
    let quick = account.claim(&lease(now())).await.pop().unwrap();
    assert_eq!((slow.attempt, quick.attempt), (1, 2));
    let result = |attempt: &Attempt, error_class: Option<&'static str>| {
        let (status_code, duration_ms, response_body, next_attempt_at) = (None, 1, None, None);
        let outcome = AttemptOutcome {
            status_code,
            duration_ms,
            error_class,
            response_body,
            at: now(),
            next_attempt_at,
            request: None,
        };
        [(attempt.delivery_id, attempt.attempt, outcome)]
    };
    complete_attempts(&mut conn, &result(&slow, Some("timeout"))).await.unwrap();
    assert_eq!(account.deliveries(webhook).await[0].state, "pending");
    complete_attempts(&mut conn, &result(&quick, None)).await.unwrap();
    complete_attempts(&mut conn, &result(&slow, Some("timeout"))).await.unwrap();
    assert_eq!(account.deliveries(webhook).await[0].state, "delivered");
}

#[tokio::test]
async fn a_delivery_that_cannot_be_decrypted_is_a_failed_attempt() {
    let account = Account::new().await;
    let webhook = account.webhook("https://example.com", None).await;
    account.submission().await;
    let other_key = format!("secrets.master_key={}", "cd".repeat(32));
    let running = account.run(&[&other_key, "webhooks.retry_schedule=[\"0s\",\"1h\"]"]).await;
    let tried = |delivery: &store::deliveries::Delivery| delivery.error_class.is_some();
    let delivery = account.delivery_when(webhook, tried).await;
    assert_eq!((delivery.error_class.as_deref(), delivery.attempts), (Some("unwritable"), 1));
    assert!(delivery.next_attempt_at > now() + TimeDelta::minutes(40), "the schedule applies");
    running.stop().await;
}

#[tokio::test]
async fn a_delivery_in_flight_completes_before_the_service_stops() {
    let account = Account::new().await;
    let receiver = Receiver::stalled().await;
    let webhook = account.webhook(&receiver.url, None).await;
    account.submission().await;
    let running = account.run(&[]).await;
    until(async || !receiver.received().is_empty()).await;
    let durations = "job_runner_delivery_seconds_count{result=\"delivered\"}";
    let before = metric(durations);
    assert!(metric("job_runner_deliveries_in_progress") >= 1.0, "other tests deliver too");
    running.request_stop();
    receiver.release();
    running.stop().await;
    assert!(metric(durations) > before);
    let delivery = account.deliveries(webhook).await.pop().unwrap();
    assert_eq!((delivery.state.as_str(), delivery.attempts), ("delivered", 1));
}
