//! Deliveries: lists, retries on demand, and cancellation with a deactivated webhook.

use http::{Method, StatusCode};
use sandbox::test::until;
use serde_json::{Value, json};
use service::{Clock, Rng};
use store::deliveries::{Attempt, ClaimLimit, Lease, claim, list_due};
use uuid::Uuid;

use crate::webhooks::settings::Owner;

impl Owner {
    /// Inserts a delivery in this state.
    async fn delivery(&self, webhook: &Value, state: &str, finished: &str) -> Uuid {
        let id = Rng::system().uuid_v7(Clock::system().now());
        let statement = format!(
            "insert into deliveries (id, account_id, webhook_id, event, payload, state, attempts, next_attempt_at,
                                     created_at, finished_at)
             values ('{id}', '{}', '{}', 'submission.created', '{{}}', '{state}', 3, now() + interval '1 hour',
                     now() - interval '20 days', {finished})",
            self.account_id,
            webhook["id"].as_str().unwrap(),
        );
        self.api.execute(&statement).await.unwrap();
        id
    }

    /// The ids of the listed deliveries with this status.
    async fn listed(&self, path: &str, status: &str) -> Vec<String> {
        let listed = self.get(&format!("{path}/deliveries?status={status}")).await;
        let ids = listed["deliveries"].as_array().unwrap().iter();
        ids.map(|one| one["id"].as_str().unwrap().to_owned()).collect()
    }
}

fn hook() -> Value {
    json!({"url": "https://example.com/hook"})
}

/// The attempt that a job-runner claims, if the delivery is due.
async fn claim_attempt(conn: &mut store::Conn, id: Uuid) -> Option<Attempt> {
    let now = Clock::system().now();
    let due = list_due(conn, now).await.unwrap();
    let claim_limits: Vec<_> =
        due.into_iter().map(|webhook_id| ClaimLimit { webhook_id, limit: 100 }).collect();
    let claimed = claim(conn, &Lease { now, until: now }, &claim_limits).await.unwrap();
    claimed.into_iter().find(|attempt| attempt.delivery_id == id)
}

#[tokio::test]
async fn a_test_creates_a_due_delivery_and_returns_its_state() {
    let owner = Owner::new(&["webhooks.test_timeout=1ms"]).await;
    let (path, created) = owner.webhook(hook()).await;
    let (status, tested) = owner.call(Method::POST, &format!("{path}/test"), Value::Null).await;
    assert_eq!(status, StatusCode::OK, "{tested}");
    let expected =
        [("event", json!("webhook.ping")), ("status", json!("pending")), ("success", json!(false))];
    for (member, value) in expected {
        assert_eq!(tested[member], value, "{tested}");
    }
    assert_eq!(owner.listed(&path, "pending").await, [tested["id"].as_str().unwrap()]);
    let mut tx = owner.api.begin().await;
    let delivery_id: Uuid = tested["id"].as_str().unwrap().parse().unwrap();
    let attempt = claim_attempt(&mut tx, delivery_id).await.unwrap();
    assert_eq!(
        (&attempt.payload["type"], &attempt.payload["data"]["webhookId"]),
        (&json!("webhook.ping"), &created["id"])
    );
}

#[tokio::test]
async fn an_account_holds_at_most_two_requests_open_with_webhook_tests() {
    let owner = Owner::new(&["webhooks.test_timeout=60s"]).await;
    let (path, _) = owner.webhook(hook()).await;
    let (other, _) = owner.webhook(hook()).await;
    let (test, other_test) = (format!("{path}/test"), format!("{other}/test"));
    let send = async |path: &str| owner.call(Method::POST, path, Value::Null).await;
    let refused = async {
        until(async || owner.listed(&path, "pending").await.len() == 2).await;
        let (status, problem) = send(&other_test).await;
        assert_eq!(
            (status, &problem["code"]),
            (StatusCode::TOO_MANY_REQUESTS, &json!("rate_limited")),
            "{problem}"
        );
        // Ends the two tests.
        owner.call(Method::PATCH, &path, json!({"isActive": false})).await;
    };
    let (first, second, ()) = tokio::join!(send(&test), send(&test), refused);
    for (status, tested) in [first, second] {
        assert_eq!((status, &tested["status"]), (StatusCode::OK, &json!("canceled")), "{tested}");
    }
    let third = async {
        until(async || owner.listed(&other, "pending").await.len() == 1).await;
        owner.call(Method::PATCH, &other, json!({"isActive": false})).await;
    };
    assert_eq!(tokio::join!(send(&other_test), third).0.0, StatusCode::OK);
}

#[tokio::test]
async fn deactivating_a_webhook_stops_and_cancels_its_deliveries() {
    let owner = Owner::new(&[]).await;
    let (path, created) = owner.webhook(hook()).await;
    let (_, other) = owner.webhook(hook()).await;
    let pending = owner.delivery(&created, "pending", "null").await.to_string();
    let others = owner.delivery(&other, "pending", "null").await.to_string();
    let (_, off) = owner.call(Method::PATCH, &path, json!({"isActive": false})).await;
    assert_eq!(off["isActive"], false);
    assert_eq!(owner.listed(&path, "canceled").await, std::slice::from_ref(&pending));
    let other_path = format!("/api/webhooks/{}", other["id"].as_str().unwrap());
    assert_eq!(owner.listed(&other_path, "pending").await, [others]);
    let since = json!({"since": Clock::system().now() - chrono::TimeDelta::hours(1)});
    for (call, body) in [
        ("test".to_owned(), Value::Null),
        ("retry".to_owned(), since.clone()),
        (format!("deliveries/{pending}/retry"), Value::Null),
    ] {
        let (status, problem) = owner.call(Method::POST, &format!("{path}/{call}"), body).await;
        assert_eq!((status, &problem["code"]), (StatusCode::CONFLICT, &json!("conflict")), "{call}");
    }
    // A delivery that was inserted during the deactivation.
    owner.delivery(&created, "pending", "null").await;
    owner.call(Method::PATCH, &path, json!({"isActive": true})).await;
    assert_eq!(owner.listed(&path, "canceled").await.len(), 2, "none is sent automatically");
    let (_, retried) = owner.call(Method::POST, &format!("{path}/retry"), since).await;
    assert_eq!(retried["retried"], 2, "the owner can retry them");
}

#[tokio::test]
async fn a_delivery_can_be_retried_in_any_state() {
    let owner = Owner::new(&[]).await;
    let (path, created) = owner.webhook(hook()).await;
    let (other_path, _) = owner.webhook(hook()).await;
    for state in ["delivered", "failed", "canceled", "pending"] {
        let id = owner.delivery(&created, state, if state == "pending" { "null" } else { "now()" }).await;
        let (status, again) =
            owner.call(Method::POST, &format!("{path}/deliveries/{id}/retry"), Value::Null).await;
        assert_eq!(status, StatusCode::OK, "{again}");
        assert_eq!((&again["status"], &again["attempts"]), (&json!("pending"), &json!(3)), "{state}");
        assert!(again["finishedAt"].is_null());
        let mut tx = owner.api.begin().await;
        let attempt = claim_attempt(&mut tx, id).await.unwrap();
        assert_eq!((attempt.attempt, attempt.attempts_before), (4, 3), "its retry schedule starts again");
        for unknown in [
            format!("{other_path}/deliveries/{id}/retry"),
            format!("{path}/deliveries/{}/retry", created["id"].as_str().unwrap()),
        ] {
            assert_eq!(owner.call(Method::POST, &unknown, Value::Null).await.0, StatusCode::NOT_FOUND);
        }
    }
}

#[tokio::test]
async fn a_retry_skips_a_delivery_with_an_attempt_in_progress() {
    let owner = Owner::new(&[]).await;
    let (path, created) = owner.webhook(hook()).await;
    let id = owner.delivery(&created, "pending", "null").await;
    owner.api.execute("update deliveries set leased_until = now() + interval '1 minute'").await.unwrap();
    let (status, again) =
        owner.call(Method::POST, &format!("{path}/deliveries/{id}/retry"), Value::Null).await;
    assert_eq!((status, &again["status"]), (StatusCode::OK, &json!("pending")));
    let mut tx = owner.api.begin().await;
    assert!(claim_attempt(&mut tx, id).await.is_none());
}

#[tokio::test]
async fn all_failed_deliveries_since_a_time_are_retried_once() {
    let owner = Owner::new(&["webhooks.max_retries_per_call=2"]).await;
    let (path, created) = owner.webhook(hook()).await;
    let before = owner.delivery(&created, "failed", "now() - interval '3 hours'").await.to_string();
    for state in ["failed", "canceled", "failed", "delivered"] {
        owner.delivery(&created, state, "now() - interval '1 hour'").await;
    }
    owner.delivery(&created, "pending", "null").await;
    let ping = owner.delivery(&created, "failed", "now()").await.to_string();
    owner
        .api
        .execute(&format!("update deliveries set event = 'webhook.ping' where id = '{ping}'"))
        .await
        .unwrap();
    let since = json!({"since": Clock::system().now() - chrono::TimeDelta::hours(2)});
    let retry = format!("{path}/retry");
    for (retried, has_more) in [(2, true), (1, false), (0, false)] {
        let (status, response) = owner.call(Method::POST, &retry, since.clone()).await;
        assert_eq!(status, StatusCode::OK, "{response}");
        assert_eq!((&response["retried"], &response["hasMore"]), (&json!(retried), &json!(has_more)));
    }
    let mut left = owner.listed(&path, "failed").await;
    left.sort();
    let mut expected = [before, ping];
    expected.sort();
    assert_eq!(left, expected);
    assert_eq!(owner.listed(&path, "pending").await.len(), 4);
    assert_eq!(owner.listed(&path, "delivered").await.len(), 1);
}

#[tokio::test]
async fn the_age_of_retried_deliveries_is_bounded() {
    let owner = Owner::new(&[]).await;
    let (path, _) = owner.webhook(hook()).await;
    for since in ["2020-01-01T00:00:00Z", "1969-01-01T00:00:00Z", "+10000-01-01T00:00:00Z"] {
        let (status, problem) =
            owner.call(Method::POST, &format!("{path}/retry"), json!({"since": since})).await;
        assert_eq!(
            (status, &problem["fieldErrors"][0]["field"]),
            (StatusCode::BAD_REQUEST, &json!("since")),
            "{since}"
        );
    }
}

#[tokio::test]
async fn the_log_shows_the_last_attempt_and_is_paginated() {
    let owner = Owner::new(&[]).await;
    let (path, created) = owner.webhook(hook()).await;
    let failed = owner.delivery(&created, "failed", "now()").await;
    owner.delivery(&created, "delivered", "now()").await;
    let attempts = format!(
        "insert into delivery_attempts (delivery_id, attempt, status_code, duration_ms, error_class, response_body, attempted_at)
         values ('{failed}', 2, null, 15000, 'timeout', null, now() - interval '1 hour'),
                ('{failed}', 3, 503, 42, 'http_status', 'later, please', now())"
    );
    owner.api.execute(&attempts).await.unwrap();
    let listed = owner.get(&format!("{path}/deliveries?status=failed")).await;
    let one = &listed["deliveries"][0];
    let expected = [
        ("id", json!(failed)),
        ("event", json!("submission.created")),
        ("success", json!(false)),
        ("attempts", json!(3)),
        ("statusCode", json!(503)),
        ("responseTimeMs", json!(42)),
        ("error", json!("http_status")),
        ("responseBody", json!("later, please")),
        ("nextAttemptAt", json!(null)),
        ("submissionId", json!(null)),
    ];
    for (member, value) in expected {
        assert_eq!(one[member], value, "{member}: {one}");
    }
    assert!(one["attemptedAt"].is_string() && one["finishedAt"].is_string());
    let first = owner.get(&format!("{path}/deliveries?limit=1")).await;
    assert_eq!((first["deliveries"].as_array().unwrap().len(), &first["hasMore"]), (1, &json!(true)));
    let cursor = first["nextCursor"].as_str().unwrap();
    let second = owner.get(&format!("{path}/deliveries?limit=1&cursor={cursor}")).await;
    assert_eq!((&second["deliveries"][0]["id"], &second["hasMore"]), (&json!(failed), &json!(false)));
}
