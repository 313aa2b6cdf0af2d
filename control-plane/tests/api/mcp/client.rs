//! A client that shows exactly what is on the wire.

use axum::body::Body;
use http::{HeaderMap, Method, Request, StatusCode};
use serde_json::{Value, json};

use crate::harness::Api;

/// The newest version of each era.
pub(super) const LEGACY: &str = "2025-11-25";
pub(super) const MODERN: &str = "2026-07-28";

/// Posts a body with these headers beside the key's.
pub(super) async fn post(
    api: &Api,
    key: Option<&str>,
    path: &str,
    headers: &[(&str, &str)],
    body: String,
) -> (StatusCode, HeaderMap, Value) {
    let mut request = Request::builder().method(Method::POST).uri(path);
    if !headers.iter().any(|(name, _)| *name == "content-type") {
        request = request.header("content-type", "application/json");
    }
    if let Some(key) = key {
        request = request.header("authorization", format!("Bearer {key}"));
    }
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    api.exchange(request.body(Body::from(body)).unwrap()).await
}

/// Sends a request of the legacy era and returns the whole message.
pub(super) async fn legacy(api: &Api, key: &str, method: &str, params: Value) -> Value {
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let headers = [("mcp-protocol-version", LEGACY)];
    let (status, _, answer) = post(api, Some(key), "/api/mcp", &headers, message.to_string()).await;
    assert_eq!((status, &answer["id"]), (StatusCode::OK, &json!(1)), "{answer}");
    answer
}

/// Sends a request of the modern era and returns the status and the whole message.
pub(super) async fn modern(api: &Api, key: &str, method: &str, mut params: Value) -> (StatusCode, Value) {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let name = params["name"].as_str().or(params["uri"].as_str()).unwrap_or_default().to_owned();
    let message = json!({"jsonrpc": "2.0", "id": "a", "method": method, "params": params});
    let headers = [("mcp-protocol-version", MODERN), ("mcp-method", method), ("mcp-name", &name)];
    let headers = if name.is_empty() { &headers[..2] } else { &headers };
    let (status, _, answer) = post(api, Some(key), "/api/mcp", headers, message.to_string()).await;
    assert_eq!(answer["id"], "a", "{answer}");
    (status, answer)
}

/// Calls a tool and returns its result.
pub(super) async fn call(api: &Api, key: &str, name: &str, arguments: Value) -> Value {
    let answer = legacy(api, key, "tools/call", json!({"name": name, "arguments": arguments})).await;
    assert!(answer["result"].is_object(), "{name}: {answer}");
    answer["result"].clone()
}

/// Calls a tool that succeeds, and returns its structured content.
pub(super) async fn called(api: &Api, key: &str, name: &str, arguments: Value) -> Value {
    let result = call(api, key, name, arguments).await;
    assert_eq!(result["isError"], false, "{name}: {result}");
    let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(text, result["structuredContent"], "{name}");
    text
}

/// Returns the tools that a key sees at this path.
pub(super) async fn tools(api: &Api, key: &str, path: &str) -> Vec<Value> {
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let (_, _, answer) = post(api, Some(key), path, &[], message.to_string()).await;
    answer["result"]["tools"].as_array().unwrap_or_else(|| panic!("{answer}")).clone()
}

/// Returns the names of tools.
pub(super) fn names(tools: &[Value]) -> Vec<&str> {
    tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}
