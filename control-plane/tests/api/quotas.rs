//! Limits hold under concurrency: the count and the check are one statement.

use std::sync::Arc;

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::harness::Api;

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_creates_at_once_at_a_limit_of_ten_give_exactly_ten() {
    // A few connections serve a hundred calls sooner than many that are all being opened at once.
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
    let answers = creating.join_all().await;
    let made = answers.iter().filter(|(status, _)| *status == StatusCode::CREATED).count();
    let refused = answers
        .iter()
        .filter(|(_, answer)| answer["code"] == "quota_exceeded" && answer["limit"] == 10)
        .count();
    assert_eq!((made, refused), (10, 90));
}

#[tokio::test]
async fn what_is_deleted_can_be_made_again() {
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
