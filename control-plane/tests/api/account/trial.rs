//! Trials: keys without an account, with rate limits.

use axum::Router;
use axum::body::Body;
use chrono::Timelike;
use http::{HeaderMap, Method, Request, StatusCode};
use serde_json::{Value, json};
use service::Clock;

use crate::harness::{Api, exchange};

#[tokio::test]
async fn a_trial_key_works_immediately_and_is_shown_once() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let (status, account) = api.send(Method::GET, "/api/account", Some(&key), &Value::Null).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!((&account["plan"], &account["_meta"]["claimed"]), (&json!("free"), &json!(false)));
    assert_eq!(account["_meta"]["usage"]["subdomains"], json!({"used": 1, "limit": 1}));
    assert!(!account.to_string().contains(&key));
}

const EDGE_TOKEN: &str = "the-token-of-the-edge";

/// Two replicas with shared counters and a long Redis timeout, which trust the edge's client IP header.
async fn two_replicas(set: &[&str]) -> (Api, Router) {
    let token = format!("secrets.edge_token={EDGE_TOKEN}");
    let api = Api::start(&[&["trial.redis_timeout=30s", token.as_str()], set].concat()).await;
    let replica = api.replica(&[]);
    (api, replica)
}

fn trial_from(ip: &str) -> Request<Body> {
    let request = Request::post("/api/trial").header("x-edge-token", EDGE_TOKEN).header("x-client-ip", ip);
    request.body(Body::empty()).unwrap()
}

/// Creates trials on alternating replicas; returns the number created and the last response.
async fn create_trials(
    (api, replica): &(Api, Router),
    ips: &[&str],
    tries: usize,
) -> (usize, HeaderMap, Value) {
    let (mut created, mut last) = (0, (HeaderMap::new(), Value::Null));
    for number in 0..tries {
        let request = trial_from(ips[number % ips.len()]);
        let (status, headers, response) = if number % 2 == 0 {
            api.exchange(request).await
        } else {
            exchange(replica.clone(), request).await
        };
        assert!([StatusCode::CREATED, StatusCode::TOO_MANY_REQUESTS].contains(&status), "{response}");
        created += usize::from(status == StatusCode::CREATED);
        last = (headers, response);
    }
    (created, last.0, last.1)
}

/// Asserts the limit, or at most twice the limit if a new window has begun meanwhile.
fn assert_limit(created: usize, limit: usize) {
    assert!((limit..=2 * limit).contains(&created), "{created} were created at a limit of {limit}");
    let now = Clock::system().now();
    let is_past_window_start = now.minute() > 5;
    assert!(created == limit || !is_past_window_start, "{created} were created at a limit of {limit}");
}

#[tokio::test]
async fn one_address_gets_five_trials_an_hour_across_replicas_then_retry_after() {
    let replicas = two_replicas(&[]).await;
    let (count, headers, problem) = create_trials(&replicas, &["203.0.113.9"], 12).await;
    assert_limit(count, 5);
    assert_eq!(problem["code"], "rate_limited");
    let retry_after: u64 = headers["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=3_600).contains(&retry_after), "{retry_after}");
    assert_eq!(headers["ratelimit-policy"], r#""hour";q=5;w=3600, "day";q=20;w=86400"#);
    assert_eq!(headers["ratelimit"], format!(r#""hour";r=0;t={retry_after}"#));
    // Another address has its own quota.
    let (status, headers, _) = replicas.0.exchange(trial_from("203.0.113.10")).await;
    assert_eq!(status, StatusCode::CREATED);
    assert!(headers["ratelimit"].to_str().unwrap().starts_with(r#""hour";r=4;t="#), "{headers:?}");
    assert!(headers.contains_key("ratelimit-policy"));
}

#[tokio::test]
async fn one_address_gets_twenty_trials_a_day_across_replicas() {
    let replicas = two_replicas(&["trial.max_per_hour=1000"]).await;
    let (count, headers, _) = create_trials(&replicas, &["203.0.113.9"], 26).await;
    assert_limit(count, 20);
    assert!(headers["ratelimit"].to_str().unwrap().starts_with(r#""day";r=0;t="#), "{headers:?}");
}

#[tokio::test]
async fn an_ipv6_network_counts_as_one_address_and_mapped_ipv4_as_ipv4() {
    let replicas = two_replicas(&[]).await;
    let network = ["2001:db8:1:2::1", "2001:db8:1:2:ffff::9", "2001:db8:1:2:a:b:c:d"];
    assert_limit(create_trials(&replicas, &network, 12).await.0, 5);
    assert_limit(create_trials(&replicas, &["2001:db8:1:3::1"], 12).await.0, 5);
    assert_limit(create_trials(&replicas, &["198.51.100.7", "::ffff:198.51.100.7"], 12).await.0, 5);
    assert_limit(create_trials(&replicas, &["::ffff:198.51.100.8"], 12).await.0, 5);
}

#[tokio::test]
async fn unknown_paths_and_methods_are_problems() {
    let api = Api::start(&[]).await;
    let (status, problem) = api.send(Method::GET, "/api/nothing", None, &Value::Null).await;
    assert_eq!((status, &problem["code"]), (StatusCode::NOT_FOUND, &json!("not_found")));
    let (status, problem) = api.send(Method::DELETE, "/api/trial", None, &Value::Null).await;
    assert_eq!((status, &problem["code"]), (StatusCode::METHOD_NOT_ALLOWED, &json!("method_not_allowed")));
    assert!(problem["requestId"].as_str().is_some_and(|id| id.len() == 32));
}
