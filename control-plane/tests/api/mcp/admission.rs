//! Messages are admitted as other calls of the API are: once, for an account that is allowed to call.

use std::convert::Infallible;

use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, Method, Request, StatusCode};
use serde_json::{Value, json};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinHandle;

use super::client::{called, legacy, post};
use crate::harness::{Api, exchange};

fn message(method: &str, params: Value) -> String {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()
}

/// Sends a message with its length, as clients do.
async fn send_sized(api: &Api, key: Option<&str>, body: String) -> (StatusCode, HeaderMap, Value) {
    post(api, key, "/api/mcp", &[("content-length", &body.len().to_string())], body).await
}

fn is_limited(status: StatusCode, answer: &Value) -> bool {
    status == StatusCode::TOO_MANY_REQUESTS
        || answer["result"]["isError"] == true
            && answer["result"]["structuredContent"]["code"] == "rate_limited"
}

#[tokio::test]
async fn a_call_counts_once() {
    let api = Api::start(&["api.max_requests_per_second=3"]).await;
    let key = api.trial().await;
    let send =
        async || send_sized(&api, Some(&key), message("tools/call", json!({"name": "account_read"}))).await;
    let first = futures::future::join_all((0..3).map(|_| send())).await;
    for (status, headers, answer) in &first {
        assert_eq!(*status, StatusCode::OK, "{answer}");
        assert!(answer["result"]["structuredContent"]["id"].is_string(), "{answer}");
        assert_eq!(headers["ratelimit-policy"], r#""second";q=3;w=1"#);
    }
    let further = futures::future::join_all((0..30).map(|_| send())).await;
    let (status, headers, answer) =
        further.iter().find(|(status, _, answer)| is_limited(*status, answer)).expect("one is refused");
    assert_eq!(*status, StatusCode::OK, "the model is to see why");
    assert_eq!(answer["result"]["structuredContent"]["status"], 429, "{answer}");
    assert!(answer["result"]["structuredContent"]["requestId"].is_string(), "{answer}");
    assert_eq!(headers["ratelimit"], r#""second";r=0;t=1"#);
}

#[tokio::test]
async fn messages_that_make_no_call_count_too() {
    let api = Api::start(&["api.max_requests_per_second=1"]).await;
    let key = api.trial().await;
    let search = json!({"name": "search_api", "arguments": {"query": "page"}});
    let describe = json!({"name": "describe_api", "arguments": {"operation": "pages.create"}});
    for (method, params) in [
        ("tools/list", json!({})),
        ("tools/call", search),
        ("tools/call", describe),
        ("tools/call", json!({"name": "nothing"})),
        ("initialize", json!({"protocolVersion": "2025-11-25"})),
        ("resources/list", json!({})),
        ("resources/read", json!({"uri": "http://localhost:8080/llms.txt"})),
        ("notifications/initialized", json!({})),
    ] {
        let body = message(method, params.clone());
        let sent = (0..20).map(|_| send_sized(&api, Some(&key), body.clone()));
        let answers = futures::future::join_all(sent).await;
        assert!(answers.iter().all(|(_, headers, _)| headers.contains_key("ratelimit")), "{method}");
        let limited = answers.iter().filter(|(status, _, answer)| is_limited(*status, answer)).count();
        assert!(limited >= 10, "{method} {params}: {limited}");
        let with_status = |(status, headers, _): &(StatusCode, HeaderMap, Value)| {
            *status != StatusCode::TOO_MANY_REQUESTS || headers.contains_key("retry-after")
        };
        assert!(answers.iter().all(with_status), "{method}");
    }
    let body = message("tools/call", json!({"name": "account_read"}));
    let of_unknown_length = (0..20).map(|_| post(&api, Some(&key), "/api/mcp", &[], body.clone()));
    let answers = futures::future::join_all(of_unknown_length).await;
    let limited = answers.iter().filter(|(status, ..)| *status == StatusCode::TOO_MANY_REQUESTS).count();
    assert!(limited >= 10, "a body that may be large is not read: {limited}");
    let unauthenticated = (0..20).map(|_| post(&api, None, "/api/mcp", &[], message("ping", json!({}))));
    let answers = futures::future::join_all(unauthenticated).await;
    assert!(answers.iter().any(|(status, ..)| *status == StatusCode::TOO_MANY_REQUESTS), "by address");
}

/// A message that stopped before its end.
struct SlowMessage {
    rest: Sender<Result<Bytes, Infallible>>,
    end: Bytes,
    response: JoinHandle<(StatusCode, HeaderMap, Value)>,
}

impl SlowMessage {
    async fn send(router: &Router, key: &str, body: String) -> Self {
        let (rest, receiver) = channel(1);
        let stream = async |mut receiver: Receiver<_>| Some((receiver.recv().await?, receiver));
        let request = Request::post("/api/mcp")
            .header("authorization", format!("Bearer {key}"))
            .header("content-type", "application/json")
            .header("content-length", body.len())
            .body(Body::from_stream(futures::stream::unfold(receiver, stream)))
            .unwrap();
        let response = tokio::spawn(exchange(router.clone(), request));
        let mut start = Bytes::from(body);
        let end = start.split_off(start.len() / 2);
        // The second is taken once the first was read.
        rest.send(Ok(start)).await.unwrap();
        rest.send(Ok(Bytes::new())).await.unwrap();
        rest.reserve().await.unwrap();
        Self { rest, end, response }
    }

    async fn finish(self) -> (StatusCode, HeaderMap, Value) {
        let Self { rest, end, response } = self;
        rest.send(Ok(end)).await.unwrap();
        drop(rest);
        response.await.unwrap()
    }
}

#[tokio::test]
async fn a_small_message_that_arrives_slowly_holds_a_permit_of_its_account() {
    let api = Api::start(&[]).await;
    let (key, other) = (api.trial().await, api.trial().await);
    let router = api.replica(&["api.max_concurrent_per_account=1", "api.queue_timeout=300ms"]);
    let call = message("tools/call", json!({"name": "account_read"}));
    let slow = SlowMessage::send(&router, &key, call.clone()).await;
    let send = async |key: &str, body: &str| {
        let request = Request::post("/api/mcp")
            .header("authorization", format!("Bearer {key}"))
            .header("content-length", body.len())
            .body(Body::from(body.to_owned()))
            .unwrap();
        exchange(router.clone(), request).await
    };
    let (status, headers, problem) = send(&key, &message("tools/list", json!({}))).await;
    assert_eq!((status, &problem["code"]), (StatusCode::SERVICE_UNAVAILABLE, &json!("unavailable")));
    assert!(headers.contains_key("retry-after"));
    assert_eq!(send(&other, &call).await.2["result"]["isError"], false, "another account");
    let (status, _, answer) = slow.finish().await;
    assert_eq!((status, &answer["result"]["isError"]), (StatusCode::OK, &json!(false)), "{answer}");
    let (_, _, answer) = send(&key, &call).await;
    assert_eq!(answer["result"]["isError"], false, "a call needs no second permit: {answer}");
}

#[tokio::test]
async fn a_key_that_is_revoked_while_its_message_arrives_writes_nothing() {
    let api = Api::start(&["keys.cache_ttl=0s"]).await;
    let (key, account_id) = api.trial_on(domain::plans::Plan::Pro).await;
    let scopes = domain::scopes::ScopeSet::parse(["folders:create"]).unwrap();
    let (_, revoked) = api.insert_key(account_id, scopes, Default::default(), None).await;
    let create = json!({"name": "folders_create", "arguments": {"name": "F"}});
    let router = api.replica(&[]);
    let slow = SlowMessage::send(&router, &revoked, message("tools/call", create)).await;
    api.execute("update api_keys set revoked_at = now() where label = 'test'").await.unwrap();
    let (status, headers, problem) = slow.finish().await;
    assert_eq!(
        (status, &problem["code"]),
        (StatusCode::UNAUTHORIZED, &json!("unauthenticated")),
        "{problem}"
    );
    assert!(headers["www-authenticate"].to_str().unwrap().contains("resource_metadata"));
    assert_eq!(called(&api, &key, "folders_list", json!({})).await["folders"], json!([]));
}

#[tokio::test]
async fn suspended_accounts_and_ended_keys_get_nothing() {
    let api = Api::start(&["keys.cache_ttl=0s"]).await;
    let key = api.trial().await;
    let statements = [
        ("update accounts set suspended_at = now()", StatusCode::FORBIDDEN, "suspended"),
        ("update accounts set suspended_at = null", StatusCode::OK, ""),
        (
            "update api_keys set expires_at = now() - interval '1 second'",
            StatusCode::UNAUTHORIZED,
            "key_expired",
        ),
        ("update api_keys set expires_at = null", StatusCode::OK, ""),
        ("update api_keys set revoked_at = now()", StatusCode::UNAUTHORIZED, "unauthenticated"),
    ];
    for (statement, expected, code) in statements {
        api.execute(statement).await.unwrap();
        for (method, params) in [
            ("initialize", json!({"protocolVersion": "2025-11-25"})),
            ("tools/list", json!({})),
            ("tools/call", json!({"name": "search_api", "arguments": {"query": "page"}})),
            ("tools/call", json!({"name": "account_read"})),
        ] {
            let (status, _, answer) = post(&api, Some(&key), "/api/mcp", &[], message(method, params)).await;
            assert_eq!(status, expected, "{statement} {method}: {answer}");
            assert_eq!(answer["code"].as_str().unwrap_or_default(), code, "{statement} {method}");
        }
    }
    let (status, _) = api.send(Method::GET, "/api/account", Some(&key), &Value::Null).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_fresh_key_works() {
    let api = Api::start(&["api.max_concurrent_per_account=1", "api.queue_timeout=300ms"]).await;
    let key = api.trial().await;
    let read = legacy(&api, &key, "resources/read", json!({"uri": "http://localhost:8080/llms.txt"})).await;
    assert!(
        read["result"]["contents"][0]["text"].is_string(),
        "a read of a page needs no second permit: {read}"
    );
}
