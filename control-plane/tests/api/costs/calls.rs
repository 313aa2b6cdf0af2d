//! Calls under way: a busy account or address waits for its own calls and delays no other.

use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use domain::plans::Plan;
use futures::FutureExt;
use http::{Method, Request, StatusCode};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::harness::Api;
use crate::submissions::list::{fields, form};

/// The token of the edge, which may report the addresses of clients.
const EDGE_TOKEN: &str = "the-token-of-the-edge";

async fn start(set: &[&str]) -> Api {
    let shared = [
        "secrets.edge_token=the-token-of-the-edge",
        "api.queue_timeout=200ms",
        "exports.max_concurrent_per_account=8",
    ];
    Api::start(&[&shared, set].concat()).await
}

/// Sends a GET as the edge would for a client at this address.
async fn get(api: &Api, key: &str, path: &str, ip: &str) -> Response {
    let request = Request::get(path)
        .header("authorization", format!("Bearer {key}"))
        .header(contract::edge::TOKEN, EDGE_TOKEN)
        .header(contract::edge::CLIENT_IP, ip);
    api.raw_response(request.body(Body::empty()).unwrap()).await
}

async fn status(api: &Api, key: &str, ip: &str) -> StatusCode {
    get(api, key, "/api/account", ip).await.status()
}

/// An account with an export that nothing can buffer whole: a call that is under way until its body is dropped.
struct Account<'a> {
    api: &'a Api,
    key: String,
    form: Uuid,
}

impl<'a> Account<'a> {
    async fn new(api: &'a Api) -> Self {
        let (key, _) = api.trial_on(Plan::Pro).await;
        let form = form(api, &key, fields()).await;
        let statement = format!(
            "insert into submissions (id, account_id, form_id, payload, created_at, updated_at)
             select gen_random_uuid(), account_id, f.id, jsonb_build_object('note', repeat('x', 1000)), now(), now()
             from forms f, generate_series(1, 3000) where f.id = '{form}'"
        );
        api.execute(&statement).await.unwrap();
        Self { api, key, form }
    }

    async fn begin_export(&self, ip: &str) -> Response {
        let response = get(self.api, &self.key, &format!("/api/forms/{}/export", self.form), ip).await;
        assert_eq!(response.status(), StatusCode::OK);
        response
    }
}

#[tokio::test]
async fn an_account_with_all_its_calls_under_way_waits_and_delays_no_other() {
    let api = start(&["api.max_concurrent_per_account=2"]).await;
    let (busy, other) = (Account::new(&api).await, Account::new(&api).await);
    let first = busy.begin_export("192.0.2.1").await;
    let _second = busy.begin_export("192.0.2.2").await;
    let rejected = get(&api, &busy.key, "/api/account", "192.0.2.3").await;
    assert_eq!(rejected.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(rejected.headers().contains_key("retry-after"));
    let body = rejected.into_body().collect().await.unwrap().to_bytes();
    let problem: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(
        (&problem["code"], &problem["_meta"]["plan"]),
        (&json!("unavailable"), &json!("pro")),
        "{problem}"
    );
    assert_eq!(
        status(&api, &other.key, "192.0.2.3").await,
        StatusCode::OK,
        "another account at that address"
    );
    drop(first);
    assert_eq!(status(&api, &busy.key, "192.0.2.3").await, StatusCode::OK);
}

#[tokio::test]
async fn an_address_with_all_its_calls_under_way_waits_and_delays_no_other() {
    let api = start(&["api.max_concurrent_per_address=1"]).await;
    let (busy, other) = (Account::new(&api).await, Account::new(&api).await);
    for (ip, same, another) in [
        ("192.0.2.1", "192.0.2.1", "192.0.2.2"),
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", "2001:db8:1:3::1"),
    ] {
        let export = busy.begin_export(ip).await;
        assert_eq!(status(&api, &other.key, same).await, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(get(&api, "", "/api/workflows", same).await.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(status(&api, &busy.key, another).await, StatusCode::OK);
        drop(export);
        assert_eq!(status(&api, &other.key, same).await, StatusCode::OK);
    }
}

#[tokio::test]
async fn a_call_that_goes_on_without_its_client_still_counts() {
    let api = start(&["api.max_concurrent_per_account=1"]).await;
    let key = api.trial().await;
    let account = api.account_of(&key).await;
    let mut lock = api.begin().await;
    store::keys::lock_keys(&mut lock, account).await.unwrap();
    let request = Request::post("/api/keys")
        .header("authorization", format!("Bearer {key}"))
        .header("content-type", "application/json")
        .header("idempotency-key", "once")
        .body(Body::from(json!({"label": "K"}).to_string()))
        .unwrap();
    {
        // The client disconnects while its call waits for the lock.
        let mut call = Box::pin(api.raw_response(request));
        let waiting = api.until_lock_wait();
        tokio::select! {
            _ = call.as_mut() => panic!("the call must wait"),
            () = waiting => {}
        }
        assert!(call.as_mut().now_or_never().is_none());
    }
    assert_eq!(status(&api, &key, "192.0.2.1").await, StatusCode::SERVICE_UNAVAILABLE);
    store::commit(lock).await.unwrap();
    let admitted = async {
        while status(&api, &key, "192.0.2.1").await != StatusCode::OK {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), admitted).await.unwrap();
    let (_, keys) = api.send(Method::GET, "/api/keys", Some(&key), &Value::Null).await;
    assert_eq!(keys["keys"].as_array().unwrap().len(), 2, "the call was carried out");
}

#[tokio::test]
async fn a_hundred_parallel_calls_of_one_account_all_succeed() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let calls = (0..100).map(|_| api.send(Method::GET, "/api/account", Some(&key), &Value::Null));
    for (status, response) in futures::future::join_all(calls).await {
        assert_eq!(status, StatusCode::OK, "{response}");
    }
}

#[tokio::test]
async fn calls_beyond_the_configured_rate_get_429_with_rate_limit_headers() {
    let api = Api::start(&["api.max_requests_per_second=1"]).await;
    let key = api.trial().await;
    let call = || {
        let request = Request::get("/api/account").header("authorization", format!("Bearer {key}"));
        api.raw_response(request.body(Body::empty()).unwrap())
    };
    let responses = futures::future::join_all((0..20).map(|_| call())).await;
    let rejected =
        responses.iter().find(|response| response.status() == StatusCode::TOO_MANY_REQUESTS).unwrap();
    assert_eq!(rejected.headers()["ratelimit-policy"], r#""second";q=1;w=1"#);
    assert_eq!(rejected.headers()["ratelimit"], r#""second";r=0;t=1"#);
    assert_eq!(rejected.headers()["retry-after"], "1");
    let admitted = responses.iter().find(|response| response.status() == StatusCode::OK).unwrap();
    assert_eq!(admitted.headers()["ratelimit"], r#""second";r=0;t=0"#);
    let unlimited = Api::start(&[]).await.trial().await;
    assert!(unlimited.starts_with("st_trial_"));
}
