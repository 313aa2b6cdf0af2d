//! Limits hold under concurrency, because count and check are one statement.

use std::sync::Arc;

use domain::plans::Plan;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::harness::Api;

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_concurrent_creates_at_a_limit_of_ten_create_ten() {
    // A few connections serve a hundred calls faster than many that all open at once.
    let api = Arc::new(Api::start(&["store.max_connections=5"]).await);
    let key = api.trial().await;
    let mut creating = tokio::task::JoinSet::new();
    for number in 0..100 {
        let (api, key) = (Arc::clone(&api), key.clone());
        creating.spawn(async move {
            let page = json!({"slug": format!("page-{number}"), "title": "T", "html": "x"});
            let form = json!({"name": "F", "fields": [{"name": "a", "label": "A", "type": "text"}]});
            let site = json!({"name": "S"});
            let (path, body) = [("/api/pages", page), ("/api/forms", form), ("/api/analytics/sites", site)]
                [number % 3]
                .clone();
            api.send(Method::POST, path, Some(&key), &body).await
        });
    }
    let responses = creating.join_all().await;
    let created = responses.iter().filter(|(status, _)| *status == StatusCode::CREATED).count();
    let rejected = responses
        .iter()
        .filter(|(_, response)| response["code"] == "quota_exceeded" && response["limit"] == 10)
        .count();
    assert_eq!((created, rejected), (10, 90));
}

/// Sends a hundred concurrent creates at a plan limit of `limit`, of which `used` are used.
async fn send_hundred_concurrently(
    plan: Plan,
    path: &'static str,
    limit: usize,
    used: usize,
    body: fn(usize) -> Value,
) {
    let api = Arc::new(Api::start(&[]).await);
    let (key, _) = api.trial_on(plan).await;
    let mut creating = tokio::task::JoinSet::new();
    for number in 0..100 {
        let (api, key) = (Arc::clone(&api), key.clone());
        creating.spawn(async move { api.send(Method::POST, path, Some(&key), &body(number)).await });
    }
    let responses = creating.join_all().await;
    let created = responses.iter().filter(|(status, _)| *status == StatusCode::CREATED).count();
    let rejected = responses.iter().filter(|(_, response)| response["code"] == "quota_exceeded").count();
    assert_eq!((created, rejected), (limit - used, 100 - limit + used), "{path}: {responses:?}");
    let noun = path.rsplit('/').next().unwrap();
    let (_, listed) = api.send(Method::GET, &format!("{path}?limit=100"), Some(&key), &Value::Null).await;
    assert_eq!(listed[noun].as_array().unwrap().len(), limit, "the list agrees with the counter");
    let (_, usage) = api.send(Method::GET, "/api/account/usage", Some(&key), &Value::Null).await;
    assert_eq!(usage["usage"][noun]["used"], json!(limit));
}

#[tokio::test(flavor = "multi_thread")]
async fn webhooks_subdomains_and_domains_are_counted_exactly_too() {
    send_hundred_concurrently(Plan::Free, "/api/webhooks", 1, 0, |_| json!({"url": "https://a.example"}))
        .await;
    let name = |number| json!({"name": format!("name-{number}")});
    send_hundred_concurrently(Plan::Free, "/api/account/subdomains", 1, 1, name).await;
    let domain = |number| json!({"domain": format!("www{number}.example.com")});
    send_hundred_concurrently(Plan::Pro, "/api/account/domains", 5, 0, domain).await;
}

#[tokio::test]
async fn a_deletion_frees_its_quota() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let hook = json!({"url": "https://example.com/hook"});
    let (status, _) = api.send(Method::POST, "/api/webhooks", Some(&key), &hook).await;
    assert_eq!(status, StatusCode::CREATED);
    let (status, problem) = api.send(Method::POST, "/api/webhooks", Some(&key), &hook).await;
    assert_eq!((status, &problem["code"]), (StatusCode::FORBIDDEN, &json!("quota_exceeded")));
    for _ in 0..12 {
        let (status, page) = api
            .send(
                Method::POST,
                "/api/pages",
                Some(&key),
                &json!({"slug": "index", "title": "T", "html": "x"}),
            )
            .await;
        assert_eq!(status, StatusCode::CREATED, "{page}");
        let path = format!("/api/pages/{}", page["id"].as_str().unwrap());
        assert_eq!(api.send(Method::DELETE, &path, Some(&key), &Value::Null).await.0, StatusCode::OK);
    }
}
