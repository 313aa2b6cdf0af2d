//! A store is away: what needs it says so by itself, with a way to try again, and the rest of the page stands.

use axum::Router;
use axum::body::Body;
use http::{Method, Request, StatusCode};
use http_body_util::BodyExt;
use sandbox::test::SilentProxy;
use serde_json::json;
use tower::ServiceExt as _;

use super::visitor::Visitor;
use crate::harness::Api;

/// Returns status and text of a page of another control plane over the same stores.
async fn get(replica: &Router, cookie: &str, path: &str) -> (StatusCode, String) {
    let request = Request::builder().method(Method::GET).uri(path).header("cookie", cookie);
    let request = request.header("accept", "text/html").body(Body::empty()).unwrap();
    let response = replica.clone().oneshot(request).await.unwrap();
    let status = response.status();
    let html = response.into_body().collect().await.unwrap().to_bytes().to_vec();
    (status, String::from_utf8(html).unwrap())
}

const PATHS: [&str; 6] = [
    "/console",
    "/console/forms",
    "/console/analytics",
    "/console/webhooks",
    "/console/keys",
    "/console/forms/00000000-0000-4000-8000-000000000001",
];

#[tokio::test(flavor = "multi_thread")]
async fn pages_say_that_postgres_is_away_and_work_again_after_it() {
    let api = Api::start(&[]).await;
    let ada = Visitor::sign_in(&api).await;
    let (proxy, url) = SilentProxy::start(api.setting("store.url")).await;
    let replica = api.replica(&[&format!("store.url={url}"), "store.acquire_timeout=1s"]);
    sandbox::test::until(async || get(&replica, &ada.cookie, "/console/keys").await.0 == StatusCode::OK)
        .await;
    proxy.swallow();
    let pages = PATHS.map(async |path| (path, get(&replica, &ada.cookie, path).await));
    for (path, (status, html)) in futures::future::join_all(pages).await {
        // The overview is about no single answer: each of its panels says so.
        let expected = if path == "/console" { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
        assert_eq!(status, expected, "{path}: {html}");
        for text in ["<h1", "A dependency is unavailable", "Try again", "Request ", "Keyboard"] {
            assert!(html.contains(text), "{path} lacks {text}: {html}");
        }
        assert!(!html.contains("/login?returnTo"), "{path} asks to sign in again: {html}");
    }
    proxy.pass();
    sandbox::test::until(async || get(&replica, &ada.cookie, "/console/keys").await.0 == StatusCode::OK)
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_are_shown_and_writes_are_done_while_redis_is_away() {
    let api = Api::start(&[]).await;
    let ada = Visitor::sign_in(&api).await;
    let (proxy, url) = SilentProxy::start(api.setting("redis.url")).await;
    let replica = api.replica(&[&format!("redis.url={url}")]);
    assert_eq!(get(&replica, &ada.cookie, "/console").await.0, StatusCode::OK);
    proxy.swallow();
    for path in &PATHS[..5] {
        let (status, html) = get(&replica, &ada.cookie, path).await;
        assert_eq!(status, StatusCode::OK, "{path}: {html}");
    }
}

#[tokio::test]
async fn what_clickhouse_would_answer_says_that_it_is_away() {
    // No ClickHouse answers here.
    let api = Api::start(&[]).await;
    let ada = Visitor::sign_in(&api).await;
    let body = json!({ "name": "engine.example" });
    let (_, site) = api.send(Method::POST, "/api/analytics/sites", Some(&ada.key), &body).await;
    let id = site["site"]["id"].as_str().unwrap();
    for path in [format!("/console/analytics/{id}"), "/console".to_owned()] {
        let page = ada.get(&path).await;
        assert_eq!(page.status, StatusCode::OK, "{path}: {}", page.html);
        page.contains("engine.example").contains("A dependency is unavailable").contains("Try again");
    }
}
