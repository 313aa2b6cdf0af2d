//! Bad input gets the protocol's own errors, and never a 500.

use axum::body::Body;
use http::{Method, Request, StatusCode};
use serde_json::{Value, json};

use super::client::{call, legacy, post};
use crate::harness::Api;

#[tokio::test]
async fn what_is_no_message_gets_a_json_rpc_error() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let deep = format!("{}1{}", "{\"a\":".repeat(5_000), "}".repeat(5_000));
    let duplicate = r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}"#.to_owned();
    for (body, code) in [
        (String::new(), -32700),
        ("nonsense".to_owned(), -32700),
        (r#"{"jsonrpc":"2.0","id":1,"method":"pi"#.to_owned(), -32700),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#.to_owned(), -32600),
        ("[]".to_owned(), -32600),
        ("1".to_owned(), -32600),
        (json!({"id": 1, "method": "ping"}).to_string(), -32600),
        (json!({"jsonrpc": "2.0", "id": null, "method": "ping"}).to_string(), -32600),
        (json!({"jsonrpc": "2.0", "id": [1], "method": "ping"}).to_string(), -32600),
        (duplicate, -32600),
        (deep.clone(), -32600),
    ] {
        let (status, _, answer) = post(&api, Some(&key), "/api/mcp", &[], body.clone()).await;
        let start = body.get(..60).unwrap_or(&body);
        assert_eq!(
            (status, &answer["error"]["code"]),
            (StatusCode::BAD_REQUEST, &json!(code)),
            "{start}: {answer}"
        );
        assert!(answer["error"]["message"].as_str().is_some_and(|text| !text.is_empty()));
        assert!(answer.get("id").is_none(), "{answer}");
    }
    for kind in ["text/plain", "application/x-www-form-urlencoded", ""] {
        let headers = [("content-type", kind)];
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
        let (status, _, answer) = post(&api, Some(&key), "/api/mcp", &headers, body).await;
        assert_eq!((status, &answer["error"]["code"]), (StatusCode::UNSUPPORTED_MEDIA_TYPE, &json!(-32600)));
    }
    let call = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"status_read","arguments":{deep}}}}}"#
    );
    let (status, _, answer) = post(&api, Some(&key), "/api/mcp", &[], call).await;
    assert_eq!((status, &answer["error"]["code"]), (StatusCode::OK, &json!(-32602)), "{answer}");
    let response = json!({"jsonrpc": "2.0", "id": 1, "result": {}}).to_string();
    assert_eq!(post(&api, Some(&key), "/api/mcp", &[], response).await.0, StatusCode::ACCEPTED);
}

#[tokio::test]
async fn invalid_params_get_their_own_error() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    for (method, params) in [
        ("tools/call", json!([])),
        ("tools/call", json!("x")),
        ("tools/call", json!({})),
        ("tools/call", json!({"name": 7})),
        ("tools/call", json!({"name": "account_read", "arguments": []})),
        ("tools/call", json!({"name": "account_read", "arguments": "x"})),
        ("tools/call", json!({"name": ""})),
        ("tools/call", json!({"name": "no_such_tool", "arguments": {}})),
        ("tools/call", json!({"name": "mcp.call", "arguments": {}})),
        ("tools/call", json!({"name": "x".repeat(100_000)})),
        ("resources/read", json!({})),
        ("initialize", json!({"protocolVersion": 7})),
    ] {
        let answer = legacy(&api, &key, method, params.clone()).await;
        assert_eq!(
            answer["error"]["code"],
            -32602,
            "{method} {}: {answer}",
            &params.to_string()[..20.min(params.to_string().len())]
        );
    }
    let odd = json!({"id": "a/../../account?x=#\u{0}", "limit": -1});
    let result = call(&api, &key, "pages_read", json!({"id": odd["id"]})).await;
    assert_eq!(
        (&result["isError"], &result["structuredContent"]["status"]),
        (&json!(true), &json!(400)),
        "{result}"
    );
    let result = call(&api, &key, "pages_list", json!({"limit": -1, "cursor": "x".repeat(70_000)})).await;
    assert_eq!(
        (&result["isError"], &result["structuredContent"]["status"]),
        (&json!(true), &json!(400)),
        "{result}"
    );
}

#[tokio::test]
async fn a_message_over_4_mib_gets_413_and_the_way_by_http() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let html = "x".repeat(5 << 20);
    let page = json!({"name": "pages_create", "arguments": {"slug": "a", "title": "T", "html": html}});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": page}).to_string();
    let (status, _, answer) = post(&api, Some(&key), "/api/mcp", &[], body.clone()).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE, "{answer}");
    assert!(answer["error"]["message"].as_str().unwrap().contains("POST /api/launch"), "{answer}");
    let chunked = async |headers: &[(&str, &str)]| {
        let chunks: Vec<_> = body.as_bytes().chunks(1 << 16).map(<[u8]>::to_vec).collect();
        let chunks = futures::stream::iter(chunks.into_iter().map(Ok::<_, std::io::Error>));
        let mut request = Request::builder().method(Method::POST).uri("/api/mcp");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.header("authorization", format!("Bearer {key}"));
        api.exchange(request.body(Body::from_stream(chunks)).unwrap()).await.0
    };
    assert_eq!(chunked(&[]).await, StatusCode::PAYLOAD_TOO_LARGE, "of unknown length");
    assert_eq!(chunked(&[("content-length", "9999999")]).await, StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test]
async fn a_thousand_calls_at_once_are_all_answered() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let calls = (0..1_000).map(|number| {
        let (api, key) = (&api, &key);
        async move {
            let arguments = if number % 2 == 0 { json!({}) } else { json!({"limit": number}) };
            let name = ["account_read", "pages_list", "nothing", "search_api"][number % 4];
            let params = json!({"name": name, "arguments": arguments});
            let body = json!({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params});
            let (status, _, answer) = post(api, Some(key), "/api/mcp", &[], body.to_string()).await;
            assert_eq!((status, &answer["id"]), (StatusCode::OK, &json!(number)), "{answer}");
            let content = &answer["result"]["structuredContent"];
            let is_as_expected = match name {
                "account_read" => content["id"].is_string(),
                "pages_list" if number > 100 => content["status"] == 400,
                "pages_list" => content["pages"].is_array(),
                "nothing" => answer["error"]["code"] == -32602,
                _ => content["code"] == "validation_failed",
            };
            assert!(is_as_expected, "{name} {number}: {answer}");
        }
    });
    assert_eq!(futures::future::join_all(calls).await.len(), 1_000);
    assert_ne!(Value::Null, legacy(&api, &key, "ping", json!({})).await["result"]);
}
