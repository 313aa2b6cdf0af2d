//! Bounds of what an account can have stored or sent.

use std::time::Duration;

use axum::body::Body;
use http::{HeaderMap, Method, Request, StatusCode};
use serde_json::{Value, json};

use crate::harness::Api;

#[tokio::test]
async fn a_flood_of_help_requests_sends_five_mails_an_hour() {
    let api = Api::start(&[]).await;
    let (key, other) = (api.trial().await, api.trial().await);
    let body = json!({"category": "Bug report", "subject": "S", "message": "M"});
    let request = async |key: &str| {
        let (status, response) = api.send(Method::POST, "/api/help", Some(key), &body).await;
        assert_eq!((status, &response["received"]), (StatusCode::CREATED, &json!(true)), "{response}");
        response["id"].as_str().unwrap().to_owned()
    };
    for number in 0..8 {
        let id = request(&key).await;
        assert_eq!(api.help_due(&id).await.is_some(), number < 5, "request {number}");
    }
    let id = request(&other).await;
    assert!(api.help_due(&id).await.is_some(), "another account's request is mailed");
    api.execute("update help_requests set created_at = created_at - interval '1 hour'").await.unwrap();
    let id = request(&key).await;
    assert!(api.help_due(&id).await.is_some(), "an hour later requests are mailed again");
    let stored =
        "do $$ begin if (select count(*) from help_requests) <> 10 then raise 'lost'; end if; end $$";
    api.execute(stored).await.unwrap();
}

#[tokio::test]
async fn an_account_has_at_most_a_thousand_unrevoked_keys() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let account = api.account_of(&key).await;
    let statement = format!(
        "insert into api_keys (id, account_id, fingerprint, shown_prefix, label, scopes, resource_ids, created_at,
                               revoked_at)
         select gen_random_uuid(), '{account}', sha256(n::text::bytea), 'st_live_x', 'K', '{{pages:read}}', '{{}}',
                now(), case when n > 998 then now() end
         from generate_series(1, 2000) n"
    );
    api.execute(&statement).await.unwrap();
    let create = || async { api.send(Method::POST, "/api/keys", Some(&key), &json!({"label": "K"})).await };
    let (status, last) = create().await;
    assert_eq!(status, StatusCode::CREATED, "{last}");
    let (status, problem) = create().await;
    assert_eq!((status, &problem["code"]), (StatusCode::CONFLICT, &json!("conflict")), "{problem}");
    let path = format!("/api/keys/{}", last["id"].as_str().unwrap());
    assert_eq!(api.send(Method::DELETE, &path, Some(&key), &Value::Null).await.0, StatusCode::OK);
    assert_eq!(create().await.0, StatusCode::CREATED, "a revoked key makes room");
}

/// Creates a page with an entry of about 1 KB and returns its path.
async fn page_with_entry(api: &Api, key: &str, slug: &str) -> String {
    let page = json!({"slug": slug, "title": "T", "html": "x", "entryTemplate": "{{a}}"});
    let (status, created) = api.send(Method::POST, "/api/pages", Some(key), &page).await;
    assert_eq!(status, StatusCode::CREATED, "{created}");
    let path = format!("/api/pages/{}", created["id"].as_str().unwrap());
    let entry = json!({"data": {"a": "x".repeat(1_000)}});
    let (status, created) = api.send(Method::POST, &format!("{path}/entries"), Some(key), &entry).await;
    assert_eq!(status, StatusCode::CREATED, "{created}");
    path
}

#[tokio::test]
async fn deleting_filled_pages_over_and_over_archives_at_most_64_mb() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let delete = async |path: &str| api.send(Method::DELETE, path, Some(&key), &Value::Null).await;
    let first = page_with_entry(&api, &key, "first").await;
    assert_eq!(delete(&first).await.0, StatusCode::OK);
    let size = "do $$ begin if (select bytes from entry_archives) not between 1100 and 1200 then
                raise 'wrong size'; end if; end $$";
    api.execute(size).await.unwrap();

    api.execute("update entry_archives set bytes = 67108864 - 1500").await.unwrap();
    let second = page_with_entry(&api, &key, "second").await;
    assert_eq!(delete(&second).await.0, StatusCode::OK, "it still fits");
    let third = page_with_entry(&api, &key, "third").await;
    let (status, problem) = delete(&third).await;
    assert_eq!((status, &problem["code"]), (StatusCode::CONFLICT, &json!("conflict")), "{problem}");
    let (status, page) = api.send(Method::GET, &third, Some(&key), &Value::Null).await;
    assert_eq!(
        (status, page["entries"].as_array().unwrap().len()),
        (StatusCode::OK, 1),
        "nothing was changed"
    );

    let entry = format!("{third}/entries/{}", page["entries"][0]["id"].as_str().unwrap());
    assert_eq!(delete(&entry).await.0, StatusCode::OK);
    assert_eq!(delete(&third).await.0, StatusCode::OK, "a page without entries needs no archive");
}

#[tokio::test]
async fn a_request_with_thousands_of_invalid_items_gets_fifty_field_errors() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let body = json!({"label": "K", "scopes": vec!["nonsense"; 5_000]});
    let (status, problem) = api.send(Method::POST, "/api/keys", Some(&key), &body).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert_eq!(problem["fieldErrors"].as_array().unwrap().len(), 50);
    assert!(problem["detail"].as_str().unwrap().contains("4999 more"), "{problem}");
}

#[tokio::test]
async fn a_huge_refusal_is_not_kept_under_its_idempotency_key() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let post = async |name: &str, body: &Value| -> (StatusCode, HeaderMap, Value) {
        let request = Request::post("/api/keys")
            .header("authorization", format!("Bearer {key}"))
            .header("content-type", "application/json")
            .header("idempotency-key", name);
        api.exchange(request.body(Body::from(body.to_string())).unwrap()).await
    };
    let large = json!({"label": "K", "x".repeat(100_000): 1});
    for _ in 0..2 {
        let (status, headers, problem) = post("large", &large).await;
        assert_eq!((status, &problem["code"]), (StatusCode::BAD_REQUEST, &json!("validation_failed")));
        assert!(!headers.contains_key("idempotent-replayed"), "it is refused again instead");
    }
    let small = json!({"label": "K", "x": 1});
    assert_eq!(post("small", &small).await.0, StatusCode::BAD_REQUEST);
    let (status, headers, _) = post("small", &small).await;
    assert_eq!(
        (status, &headers["idempotent-replayed"]),
        (StatusCode::BAD_REQUEST, &"true".parse().unwrap())
    );
}

#[tokio::test]
async fn an_account_tests_two_webhooks_at_a_time() {
    // No job-runner sends the pings, so the tests wait for their whole timeout.
    let api = Api::start(&["webhooks.test_timeout=60s"]).await;
    let (key, other) = (api.trial().await, api.trial().await);
    let create = async |key: &str| {
        let body = json!({"url": "https://example.com/"});
        let (status, webhook) = api.send(Method::POST, "/api/webhooks", Some(key), &body).await;
        assert_eq!(status, StatusCode::CREATED, "{webhook}");
        format!("/api/webhooks/{}/test", webhook["id"].as_str().unwrap())
    };
    let (path, other_path) = (create(&key).await, create(&other).await);
    let test = |key: &str, path: &str| {
        let request = Request::post(path).header("authorization", format!("Bearer {key}"));
        api.raw_response(request.body(Body::empty()).unwrap())
    };
    let mut tests = [Box::pin(test(&key, &path)), Box::pin(test(&key, &path))].into_iter();
    let both = futures::future::join_all(tests.by_ref());
    let pending = async |count: usize| {
        let sent = format!(
            "do $$ begin if (select count(*) from deliveries) < {count} then raise 'not yet'; end if; end $$"
        );
        while api.execute(&sent).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    let rest = async {
        tokio::time::timeout(Duration::from_secs(30), pending(2)).await.unwrap();
        let rejected = test(&key, &path).await;
        assert_eq!(rejected.status(), StatusCode::TOO_MANY_REQUESTS);
        assert!(rejected.headers().contains_key("retry-after"));
        let third = tokio::time::timeout(Duration::from_secs(30), pending(3));
        tokio::select! {
            _ = test(&other, &other_path) => panic!("the ping is never answered"),
            sent = third => sent.unwrap(),
        }
    };
    tokio::select! {
        _ = both => panic!("the pings are never answered"),
        () = rest => {}
    }
    let again = tokio::time::timeout(Duration::from_secs(30), pending(4));
    tokio::select! {
        response = test(&key, &path) => panic!("a permit of a test that ended is free again: {}", response.status()),
        sent = again => sent.unwrap(),
    }
}
