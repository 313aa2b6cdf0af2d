//! The protocol's own rules: authentication, versions, headers and errors.

use http::{Method, Request, StatusCode};
use serde_json::{Value, json};

use super::client::{LEGACY, MODERN, legacy, modern, post};
use crate::harness::Api;

const METADATA: &str = "http://localhost:8080/.well-known/oauth-protected-resource/api/mcp";

fn message(method: &str, params: Value) -> String {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string()
}

#[tokio::test]
async fn a_request_without_a_key_learns_where_to_get_one() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let account_id = api.account_of(&key).await;
    let session = api.sign_in(account_id).await;
    let body = message("tools/list", json!({}));
    for (key, cookie) in [(None, ""), (Some("garbage"), ""), (None, session.as_str())] {
        let headers = [("cookie", cookie), ("origin", "http://localhost:8080")];
        let headers = if cookie.is_empty() { &[][..] } else { &headers };
        let (status, headers, problem) = post(&api, key, "/api/mcp", headers, body.clone()).await;
        assert_eq!((status, &problem["code"]), (StatusCode::UNAUTHORIZED, &json!("unauthenticated")));
        let challenge = headers["www-authenticate"].to_str().unwrap();
        assert!(challenge.contains(&format!("resource_metadata=\"{METADATA}\"")), "{challenge}");
        assert_eq!(challenge.contains("invalid_token"), key.is_some(), "{challenge}");
        assert!(problem["hint"].as_str().unwrap().contains("POST /api/trial"), "{problem}");
    }
    for path in ["/.well-known/oauth-protected-resource/api/mcp", "/.well-known/oauth-protected-resource"] {
        let (status, metadata) = api.send(Method::GET, path, None, &Value::Null).await;
        assert_eq!(
            (status, &metadata["resource"]),
            (StatusCode::OK, &json!("http://localhost:8080/api/mcp"))
        );
        assert_eq!(metadata["bearer_methods_supported"], json!(["header"]));
        assert!(metadata.get("authorization_servers").is_none());
        assert_eq!(metadata["key_creation"]["url"], "http://localhost:8080/api/trial");
    }
}

#[tokio::test]
async fn answers_only_posts_and_only_pages_of_this_host() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    for method in [Method::GET, Method::DELETE, Method::PUT] {
        let request = Request::builder().method(method).uri("/api/mcp");
        let request = request.header("authorization", format!("Bearer {key}"));
        let (status, headers, _) = api.exchange(request.body(axum::body::Body::empty()).unwrap()).await;
        assert_eq!((status, &headers["allow"]), (StatusCode::METHOD_NOT_ALLOWED, &"POST".parse().unwrap()));
    }
    let post = async |origin: &str| {
        let headers = [("origin", origin)];
        post(&api, Some(&key), "/api/mcp", &headers, message("ping", json!({}))).await.0
    };
    assert_eq!(post("http://localhost:8080").await, StatusCode::OK);
    assert_eq!(post("http://localhost:6274").await, StatusCode::OK, "a tool on the same machine");
    for origin in ["https://evil.test", "null", "http://shop.localhost:8080"] {
        assert_eq!(post(origin).await, StatusCode::FORBIDDEN, "{origin}");
    }
}

#[tokio::test]
async fn accepts_any_accept_header() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    for accept in
        ["*/*", "application/json", "text/event-stream", "application/json, text/event-stream", "text/html"]
    {
        let headers = [("accept", accept)];
        let (status, headers, answer) =
            post(&api, Some(&key), "/api/mcp", &headers, message("ping", json!({}))).await;
        assert_eq!((status, &answer["result"]), (StatusCode::OK, &json!({})), "{accept}");
        assert_eq!(headers["content-type"], "application/json");
        assert!(!headers.contains_key("mcp-session-id"), "there are no sessions");
    }
}

#[tokio::test]
async fn a_legacy_client_begins_with_initialize() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let start = async |version: &str| {
        let client = json!({"name": "test", "version": "1"});
        let params = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": client});
        let (status, _, answer) =
            post(&api, Some(&key), "/api/mcp", &[], message("initialize", params)).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
        answer["result"].clone()
    };
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", LEGACY] {
        assert_eq!(start(version).await["protocolVersion"], version);
    }
    for version in [MODERN, "1999-01-01", ""] {
        assert_eq!(start(version).await["protocolVersion"], LEGACY, "{version}");
    }
    let begun = start(LEGACY).await;
    assert_eq!(begun["serverInfo"]["name"], "web-runtime");
    let capabilities = json!({"logging": {}, "prompts": {}, "resources": {}, "tools": {}});
    assert_eq!(begun["capabilities"], capabilities);
    assert!(begun["instructions"].as_str().unwrap().contains("search_api"));
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string();
    let headers = [("mcp-protocol-version", LEGACY)];
    let (status, _, body) = post(&api, Some(&key), "/api/mcp", &headers, initialized).await;
    assert_eq!((status, body), (StatusCode::ACCEPTED, Value::Null));
    let level = legacy(&api, &key, "logging/setLevel", json!({"level": "debug"})).await;
    assert_eq!(level["result"], json!({}), "{level}");
    for method in ["server/nothing", "resources/subscribe", "sampling/createMessage"] {
        let unknown = legacy(&api, &key, method, json!({})).await;
        assert_eq!(unknown["error"]["code"], -32601, "{unknown}");
    }
}

#[tokio::test]
async fn a_modern_client_discovers_the_server() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let (status, answer) = modern(&api, &key, "server/discover", json!({})).await;
    let found = &answer["result"];
    assert_eq!((status, &found["resultType"]), (StatusCode::OK, &json!("complete")), "{answer}");
    assert_eq!(found["supportedVersions"], json!(["2024-11-05", "2025-03-26", "2025-06-18", LEGACY, MODERN]));
    assert!(found["ttlMs"].is_u64() && found["cacheScope"] == "private", "{found}");
    assert_eq!(found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "web-runtime");
    assert_eq!(found["capabilities"], json!({"prompts": {}, "resources": {}, "tools": {}}));
    for method in [
        "initialize",
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "resources/unsubscribe",
        "subscriptions/listen",
        "nothing",
    ] {
        let (status, answer) = modern(&api, &key, method, json!({})).await;
        assert_eq!((status, &answer["error"]["code"]), (StatusCode::NOT_FOUND, &json!(-32601)), "{method}");
    }
}

#[tokio::test]
async fn there_are_no_prompts_in_either_era() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let listed = legacy(&api, &key, "prompts/list", json!({})).await;
    assert_eq!(listed["result"], json!({"prompts": []}));
    let (status, listed) = modern(&api, &key, "prompts/list", json!({})).await;
    let expected = json!({"prompts": [], "resultType": "complete", "ttlMs": 60_000, "cacheScope": "private"});
    assert_eq!((status, &listed["result"]), (StatusCode::OK, &expected), "{listed}");
    let refused = legacy(&api, &key, "prompts/get", json!({"name": "launch"})).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("no prompt launch"), "{refused}");
    let (_, refused) = modern(&api, &key, "prompts/get", json!({"name": "launch"})).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
}

#[tokio::test]
async fn the_version_is_checked_first_and_decides_the_status() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let send = async |version: &str, params: Value| {
        let headers = [("mcp-protocol-version", version)];
        let body = message("tools/list", params);
        let (status, _, answer) = post(&api, Some(&key), "/api/mcp", &headers, body).await;
        (status.as_u16(), answer["error"].clone())
    };
    let later = "2027-01-01";
    let meta = json!({"_meta": {
        "io.modelcontextprotocol/protocolVersion": later,
        "io.modelcontextprotocol/clientCapabilities": {},
    }});
    for params in [meta, json!({}), json!([])] {
        let (status, error) = send(later, params.clone()).await;
        assert_eq!((status, &error["code"]), (400, &json!(-32022)), "{params}: {error}");
        assert_eq!(error["data"]["requested"], later);
        assert!(error["data"]["supported"].as_array().unwrap().contains(&json!(MODERN)), "{error}");
    }
    for params in [json!([]), json!("x")] {
        let (status, error) = send(MODERN, params.clone()).await;
        assert_eq!((status, &error["code"]), (400, &json!(-32602)), "{params}: {error}");
        let (status, error) = send(LEGACY, params.clone()).await;
        assert_eq!((status, &error["code"]), (200, &json!(-32602)), "{params}: {error}");
    }
}

#[tokio::test]
async fn headers_must_agree_with_the_body() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let meta = |version: &str| {
        json!({
            "io.modelcontextprotocol/protocolVersion": version,
            "io.modelcontextprotocol/clientCapabilities": {},
        })
    };
    let call = json!({"name": "account_read", "_meta": meta(MODERN)});
    let version = ("mcp-protocol-version", MODERN);
    let method = ("mcp-method", "tools/call");
    let refused = async |headers: &[(&str, &str)], name: &str, params: &Value| {
        let body = message(name, params.clone());
        let (status, _, answer) = post(&api, Some(&key), "/api/mcp", headers, body).await;
        assert_eq!((status, &answer["id"]), (StatusCode::BAD_REQUEST, &json!(1)), "{headers:?} {answer}");
        answer["error"]["code"].as_i64().unwrap()
    };
    let name = ("mcp-name", "account_read");
    for headers in [
        &[version][..],
        &[version, method],
        &[version, name],
        &[version, ("mcp-method", "tools/list"), name],
        &[version, method, ("mcp-name", "forms_create")],
        &[version, method, ("mcp-name", "=?base64?%%?=")],
        &[version, method, name, name],
        &[version, method, method, name],
        &[("mcp-protocol-version", LEGACY), method, name],
        &[method, name],
    ] {
        assert_eq!(refused(headers, "tools/call", &call).await, -32020, "{headers:?}");
    }
    let body = message("tools/call", call);
    let encoded = ("mcp-name", "=?base64?YWNjb3VudF9yZWFk?=");
    let (status, _, answer) = post(&api, Some(&key), "/api/mcp", &[version, method, encoded], body).await;
    assert_eq!((status, &answer["result"]["isError"]), (StatusCode::OK, &json!(false)), "{answer}");

    let list = [version, ("mcp-method", "tools/list")];
    assert_eq!(refused(&list, "tools/list", &json!({})).await, -32602, "no version in the body");
    let without = json!({"_meta": {"io.modelcontextprotocol/protocolVersion": MODERN}});
    assert_eq!(refused(&list, "tools/list", &without).await, -32602, "no capabilities");
    let unknown = json!({"_meta": meta("2099-01-01")});
    let headers = [("mcp-protocol-version", "2099-01-01"), ("mcp-method", "tools/list")];
    assert_eq!(refused(&headers, "tools/list", &unknown).await, -32022, "an unknown version");
    let headers = [("mcp-protocol-version", "1999-01-01")];
    assert_eq!(refused(&headers, "tools/list", &json!({})).await, -32022, "an unknown version");
    let begin = json!({"protocolVersion": LEGACY});
    let headers = [("mcp-protocol-version", "2025-06-18")];
    assert_eq!(refused(&headers, "initialize", &begin).await, -32600);
    assert_eq!(refused(&[], "server/discover", &json!({})).await, -32602);
}

#[tokio::test]
async fn llms_txt_is_a_resource() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let listed = legacy(&api, &key, "resources/list", json!({})).await;
    let resource = &listed["result"]["resources"][0];
    assert_eq!(resource["uri"], "http://localhost:8080/llms.txt");
    let uri = json!({"uri": resource["uri"]});
    let read = legacy(&api, &key, "resources/read", uri.clone()).await;
    let contents = &read["result"]["contents"][0];
    assert_eq!(
        (&contents["uri"], &contents["mimeType"]),
        (&resource["uri"], &json!("text/markdown")),
        "{read}"
    );
    assert!(contents["text"].as_str().unwrap().contains("/api/trial"), "{read}");
    let (status, read) = modern(&api, &key, "resources/read", uri).await;
    assert_eq!((status, &read["result"]["cacheScope"]), (StatusCode::OK, &json!("private")), "{read}");
    let unknown =
        legacy(&api, &key, "resources/read", json!({"uri": "http://localhost:8080/robots.txt"})).await;
    assert_eq!(unknown["error"]["code"], -32002);
    let (_, unknown) = modern(&api, &key, "resources/read", json!({"uri": "x:y"})).await;
    assert_eq!(unknown["error"]["code"], -32602);
    let templates = legacy(&api, &key, "resources/templates/list", json!({})).await;
    assert_eq!(templates["result"]["resourceTemplates"], json!([]));
}
