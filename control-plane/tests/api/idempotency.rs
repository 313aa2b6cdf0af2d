//! Idempotency: a repeated call under its `Idempotency-Key` is replayed and does not run again.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use domain::scopes::ScopeSet;
use futures::SinkExt;
use futures::channel::mpsc;
use http::{HeaderMap, Method, Request, StatusCode};
use sandbox::test::{eventually, until};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::harness::{Api, exchange};

/// Fails until a call has been claimed.
const IS_CLAIMED: &str = "do $$ begin if not exists (select 1 from idempotent_calls) then raise exception 'not yet'; end if; end $$";

fn request(key: &str, path: &str, name: &str, body: impl Into<Body>) -> Request<Body> {
    Request::post(path)
        .header("authorization", format!("Bearer {key}"))
        .header("content-type", "application/json")
        .header("idempotency-key", name)
        .body(body.into())
        .unwrap()
}

fn form(name: &str) -> String {
    json!({"name": name, "fields": [{"name": "a", "label": "A", "type": "text"}]}).to_string()
}

/// Creates a form under an `Idempotency-Key`.
async fn create(api: &Api, key: &str, name: &str, form: &str) -> (StatusCode, HeaderMap, Value) {
    api.exchange(request(key, "/api/forms", name, form.to_owned())).await
}

async fn forms(api: &Api, key: &str) -> usize {
    let (_, listed) = api.send(Method::GET, "/api/forms", Some(key), &Value::Null).await;
    listed["forms"].as_array().unwrap().len()
}

fn is_replayed(headers: &HeaderMap) -> bool {
    headers.get("idempotent-replayed").is_some_and(|value| value == "true")
}

#[tokio::test]
async fn a_repeated_call_replays_its_response_and_runs_once() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let (status, headers, mut first) = create(&api, &key, "order-17", &form("F")).await;
    assert_eq!((status, is_replayed(&headers)), (StatusCode::CREATED, false), "{first}");
    for _ in 0..3 {
        let (status, headers, mut again) = create(&api, &key, "order-17", &form("F")).await;
        assert_eq!((status, is_replayed(&headers)), (StatusCode::CREATED, true), "{again}");
        let id = headers["x-request-id"].to_str().unwrap();
        assert_eq!(again["_meta"]["requestId"], id, "the request id is the replaying request's");
        assert_ne!(again["_meta"]["requestId"], first["_meta"]["requestId"]);
        for response in [&mut first, &mut again] {
            response["_meta"]["requestId"].take();
        }
        assert_eq!((again, &headers["content-type"]), (first.clone(), &"application/json".parse().unwrap()));
    }
    assert_eq!(forms(&api, &key).await, 1);
}

#[tokio::test]
async fn a_different_body_or_query_under_the_same_key_is_a_mismatch() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    create(&api, &key, "k", &form("F")).await;
    let longer = form("F") + " ".repeat(100_000).as_str();
    for (path, body) in [("/api/forms", form("G")), ("/api/forms", longer), ("/api/forms?x=1", form("F"))] {
        let (status, headers, problem) = api.exchange(request(&key, path, "k", body)).await;
        assert_eq!((status, &problem["code"]), (StatusCode::CONFLICT, &json!("idempotency_mismatch")));
        assert!(!is_replayed(&headers));
        assert_eq!(problem["_meta"]["plan"], "free", "an authenticated problem carries _meta");
    }
    assert_eq!(forms(&api, &key).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_hundred_concurrent_calls_on_two_replicas_one_runs() {
    // A few connections serve a hundred calls faster than many that all open at once.
    let api = Arc::new(Api::start(&["store.max_connections=5"]).await);
    let (key, replica) = (api.trial().await, api.replica(&[]));
    let sent = (0..100).map(|number| {
        let (api, replica, key) = (Arc::clone(&api), replica.clone(), key.clone());
        async move {
            let request = request(&key, "/api/forms", "k", form("F"));
            if number % 2 == 0 { api.exchange(request).await } else { exchange(replica, request).await }
        }
    });
    let mut created = Vec::new();
    for (status, headers, response) in sent.collect::<JoinSet<_>>().join_all().await {
        if status == StatusCode::CREATED {
            created.push((is_replayed(&headers), response["formId"].clone()));
        } else {
            assert_eq!((status, &response["code"]), (StatusCode::CONFLICT, &json!("conflict")), "{response}");
            assert!(headers.contains_key("retry-after"));
        }
    }
    assert_eq!(created.iter().filter(|(replayed, _)| !replayed).count(), 1, "{created:?}");
    assert!(created[0].1.is_string() && created.iter().all(|(_, id)| *id == created[0].1), "{created:?}");
    assert_eq!(forms(&api, &key).await, 1);
}

#[tokio::test]
async fn a_key_belongs_to_one_account_one_credential_and_one_route() {
    let api = Api::start(&[]).await;
    let (own_key, other_key) = (api.trial().await, api.trial().await);
    let second_key = api.key_with(&own_key, ScopeSet::FULL).await;
    for key in [&own_key, &other_key, &second_key] {
        let (status, headers, response) = create(&api, key, "k", &form("F")).await;
        assert_eq!((status, is_replayed(&headers)), (StatusCode::CREATED, false), "{response}");
    }
    let site = request(&own_key, "/api/analytics/sites", "k", r#"{"name": "S"}"#);
    let (status, headers, response) = api.exchange(site).await;
    assert_eq!((status, is_replayed(&headers)), (StatusCode::CREATED, false), "{response}");
    assert_eq!((forms(&api, &own_key).await, forms(&api, &other_key).await), (2, 1));
}

#[tokio::test]
async fn a_problem_is_replayed_completely() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let hook = json!({"url": "https://example.com/hook"}).to_string();
    let create_webhook =
        async |name: &str| api.exchange(request(&key, "/api/webhooks", name, hook.clone())).await;
    assert_eq!(create_webhook("first").await.0, StatusCode::CREATED);
    let (_, _, rejected) = create_webhook("second").await;
    let (status, headers, again) = create_webhook("second").await;
    assert_eq!((status, is_replayed(&headers)), (StatusCode::FORBIDDEN, true));
    assert_eq!(headers["content-type"], "application/problem+json");
    for member in ["code", "detail", "hint", "limit", "status"] {
        assert_eq!((&again[member], again[member].is_null()), (&rejected[member], false), "{member}");
    }
    let id = headers["x-request-id"].to_str().unwrap();
    assert_eq!((&again["requestId"], &again["_meta"]["requestId"]), (&json!(id), &json!(id)));
}

#[tokio::test]
async fn a_secret_is_replayed_to_its_owner_and_stored_encrypted() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let hook = json!({"url": "https://example.com/hook"}).to_string();
    let (_, _, first) = api.exchange(request(&key, "/api/webhooks", "order-17", hook.clone())).await;
    let secret = first["secret"].as_str().unwrap();
    let (_, _, again) = api.exchange(request(&key, "/api/webhooks", "order-17", hook)).await;
    assert_eq!(again["secret"], secret);
    let is_stored = async |text: &str| {
        let found = format!(
            "do $$ begin if exists (select 1 from idempotent_calls c where c.answer is not null
               and position('{text}' in c::text || encode(c.answer, 'escape')) > 0)
             then raise exception 'found'; end if; end $$"
        );
        api.execute(&found).await.is_err()
    };
    assert!(is_stored("").await, "the response is stored");
    for text in [secret, "secret", "whsec_", "example.com", "order-17", "/api/webhooks", key.as_str()] {
        assert!(!is_stored(text).await, "{text}");
    }
}

#[tokio::test]
async fn a_key_can_be_reused_after_a_day() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    create(&api, &key, "k", &form("F")).await;
    let age = async |by: &str| {
        let older = format!("update idempotent_calls set created_at = created_at - interval '{by}'");
        api.execute(&older).await.unwrap();
    };
    age("23 hours 59 minutes").await;
    assert!(is_replayed(&create(&api, &key, "k", &form("F")).await.1));
    age("1 minute").await;
    let (status, headers, _) = create(&api, &key, "k", &form("G")).await;
    assert_eq!((status, is_replayed(&headers), forms(&api, &key).await), (StatusCode::CREATED, false, 2));
}

#[tokio::test]
async fn a_call_of_a_killed_process_is_taken_over_after_its_lease() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    create(&api, &key, "k", &form("F")).await;
    // The state that a killed process leaves.
    api.execute("update idempotent_calls set answer = null").await.unwrap();
    let (status, headers, problem) = create(&api, &key, "k", &form("F")).await;
    assert_eq!((status, &problem["code"]), (StatusCode::CONFLICT, &json!("conflict")));
    assert!(headers.contains_key("retry-after"));
    api.execute("update idempotent_calls set leased_until = now() - interval '1 second'").await.unwrap();
    let (status, headers, _) = create(&api, &key, "k", &form("F")).await;
    assert_eq!((status, is_replayed(&headers)), (StatusCode::CREATED, false));
    assert!(is_replayed(&create(&api, &key, "k", &form("F")).await.1));
}

#[tokio::test]
async fn a_disconnected_caller_gets_the_response_with_a_retry() {
    let api = Arc::new(Api::start(&[]).await);
    let key = api.trial().await;
    let body = form("F");
    let (mut sender, chunks) = mpsc::channel::<Result<String, std::io::Error>>(2);
    let request_task = tokio::spawn({
        let (api, request) = (Arc::clone(&api), request(&key, "/api/forms", "k", Body::from_stream(chunks)));
        async move { api.exchange(request).await }
    });
    until(async || api.execute(IS_CLAIMED).await.is_ok()).await;
    request_task.abort();
    assert!(request_task.await.unwrap_err().is_cancelled());
    sender.send(Ok(body.clone())).await.unwrap();
    drop(sender);
    let response = eventually(async || {
        let response = create(&api, &key, "k", &body).await;
        (response.0 != StatusCode::CONFLICT || response.2["code"] != "conflict").then_some(response)
    })
    .await;
    assert_eq!((response.0, is_replayed(&response.1)), (StatusCode::CREATED, true), "{}", response.2);
    assert_eq!(forms(&api, &key).await, 1);
}

#[tokio::test]
async fn a_running_call_keeps_its_lease_however_long_it_takes() {
    let api = Arc::new(Api::start(&["idempotency.lease_ttl=2s"]).await);
    let key = api.trial().await;
    let (mut sender, chunks) = mpsc::channel::<Result<String, std::io::Error>>(2);
    let request_task = tokio::spawn({
        let (api, request) = (Arc::clone(&api), request(&key, "/api/forms", "k", Body::from_stream(chunks)));
        async move { api.exchange(request).await }
    });
    until(async || api.execute(IS_CLAIMED).await.is_ok()).await;
    let mut poll_interval = tokio::time::interval(Duration::from_millis(100));
    // Longer than several leases.
    for _ in 0..30 {
        poll_interval.tick().await;
        let (status, _, problem) = create(&api, &key, "k", &form("F")).await;
        assert_eq!((status, &problem["code"]), (StatusCode::CONFLICT, &json!("conflict")));
    }
    sender.send(Ok(form("F"))).await.unwrap();
    drop(sender);
    let (status, headers, _) = request_task.await.unwrap();
    assert_eq!((status, is_replayed(&headers), forms(&api, &key).await), (StatusCode::CREATED, false, 1));
}

#[tokio::test]
async fn a_too_large_body_does_not_use_up_the_key() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let large = form(&"x".repeat(5 << 20));
    for _ in 0..2 {
        let (status, _, problem) = create(&api, &key, "k", &large).await;
        assert_eq!((status, &problem["code"]), (StatusCode::PAYLOAD_TOO_LARGE, &json!("payload_too_large")));
    }
    assert_eq!(create(&api, &key, "k", &form("F")).await.0, StatusCode::CREATED);
}

#[tokio::test]
async fn an_invalid_idempotency_key_is_rejected_after_authentication() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    for wrong in ["", "a b", &"k".repeat(256)] {
        let (status, _, problem) = create(&api, &key, wrong, &form("F")).await;
        assert_eq!((status, &problem["code"]), (StatusCode::BAD_REQUEST, &json!("validation_failed")));
        assert_eq!(problem["fieldErrors"][0]["field"], "Idempotency-Key", "{wrong}");
        assert_eq!(create(&api, "st_live_unknown", wrong, &form("F")).await.0, StatusCode::UNAUTHORIZED);
    }
    let mut twice = request(&key, "/api/forms", "a", form("F"));
    twice.headers_mut().append("idempotency-key", "b".parse().unwrap());
    assert_eq!(api.exchange(twice).await.0, StatusCode::BAD_REQUEST);
    assert_eq!(create(&api, &key, &"k".repeat(255), &form("F")).await.0, StatusCode::CREATED);
    assert_eq!(forms(&api, &key).await, 1);
}

#[tokio::test]
async fn a_caller_without_access_gets_no_stored_response() {
    let api = Api::start(&["keys.cache_ttl=0s"]).await;
    let key = api.trial().await;
    let statements = [
        ("update api_keys set expires_at = now() - interval '1 second'", StatusCode::UNAUTHORIZED),
        ("update api_keys set expires_at = null", StatusCode::CREATED),
        ("update accounts set suspended_at = now()", StatusCode::FORBIDDEN),
        ("update accounts set suspended_at = null", StatusCode::CREATED),
        ("update api_keys set revoked_at = now()", StatusCode::UNAUTHORIZED),
    ];
    assert_eq!(create(&api, &key, "k", &form("F")).await.0, StatusCode::CREATED);
    for (statement, expected) in statements {
        api.execute(statement).await.unwrap();
        let (status, headers, response) = create(&api, &key, "k", &form("F")).await;
        assert_eq!(
            (status, is_replayed(&headers)),
            (expected, expected.is_success()),
            "{statement}: {response}"
        );
    }
}

#[tokio::test]
async fn trials_are_never_replayed() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let mut keys = std::collections::BTreeSet::new();
    for _ in 0..2 {
        let (status, headers, trial) = api.exchange(request(&key, "/api/trial", "k", Body::empty())).await;
        assert_eq!((status, is_replayed(&headers)), (StatusCode::CREATED, false));
        keys.insert(trial["key"].as_str().unwrap().to_owned());
    }
    assert_eq!(keys.len(), 2);
}

#[tokio::test]
async fn a_call_without_a_body_is_idempotent_too() {
    let api = Api::start(&["upgrade.mode=instant"]).await;
    let key = api.trial().await;
    let call = Request::post("/api/account/upgrade")
        .header("authorization", format!("Bearer {key}"))
        .header("idempotency-key", "once");
    let (status, _, response) = api.exchange(call.body(Body::empty()).unwrap()).await;
    assert_eq!((status, &response["plan"]), (StatusCode::OK, &json!("pro")), "{response}");
}
