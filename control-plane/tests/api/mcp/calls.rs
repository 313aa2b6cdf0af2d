//! Calls of tools.

use domain::plans::Plan;
use domain::restrictions::Restrictions;
use domain::scopes::ScopeSet;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::client::{call, called, legacy, modern, post, tools};
use crate::harness::Api;

#[tokio::test]
async fn a_call_is_the_rest_call() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let (_, account) = api.send(Method::GET, "/api/account", Some(&key), &Value::Null).await;
    for name in ["account_read", "account.read", "get_account"] {
        let answer = called(&api, &key, name, json!({})).await;
        assert_eq!(answer["id"], account["id"], "{name}");
        assert_eq!(answer["_meta"]["usage"], account["_meta"]["usage"], "{name}");
    }
    let read = json!({"operation": "account.read"});
    assert_eq!(called(&api, &key, "call_api_read", read).await["id"], account["id"]);
    let (status, answer) = modern(&api, &key, "tools/call", json!({"name": "account_read"})).await;
    assert_eq!((status, &answer["result"]["resultType"]), (StatusCode::OK, &json!("complete")), "{answer}");
    assert_eq!(answer["result"]["structuredContent"]["id"], account["id"]);
}

#[tokio::test]
async fn an_agent_finds_describes_and_calls_what_is_not_listed() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let found = called(&api, &key, "search_api", json!({"query": "create a folder"})).await;
    assert_eq!(found["operations"][0]["operation"], "folders.create", "{found}");
    assert_eq!(found["operations"][0]["callWith"], "call_api_write");
    let described = called(&api, &key, "describe_api", json!({"operation": "folders_create"})).await;
    assert_eq!((&described["method"], &described["path"]), (&json!("POST"), &json!("/api/folders")));
    assert_eq!(described["scopes"], json!(["folders:create"]));
    assert!(jsonschema::is_valid(&described["inputSchema"], &json!({"name": "F"})), "{described}");
    assert!(described["outputSchema"]["properties"].is_object());
    let arguments = json!({"operation": "folders.create", "params": {"name": "F"}});
    let folder = called(&api, &key, "call_api_write", arguments).await;
    let arguments = json!({"id": folder["id"], "name": "G"});
    assert_eq!(
        called(&api, &key, "folders_update", arguments).await["name"],
        "G",
        "path and body in one object"
    );
    let arguments = json!({"operation": "folders.delete", "params": {"id": folder["id"]}});
    let wrong = call(&api, &key, "call_api_write", arguments.clone()).await;
    assert_eq!(
        (&wrong["isError"], &wrong["structuredContent"]["hint"]),
        (&json!(true), &json!("call it with call_api_delete"))
    );
    called(&api, &key, "call_api_delete", arguments).await;
    let listed = called(&api, &key, "folders_list", json!({"limit": 5})).await;
    assert_eq!(listed["folders"], json!([]), "{listed}");
}

#[tokio::test]
async fn a_write_with_an_idempotency_key_happens_once() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let create =
        json!({"operation": "folders.create", "params": {"name": "F"}, "idempotencyKey": "a-key-for-one"});
    let first = called(&api, &key, "call_api_write", create.clone()).await;
    assert_eq!(called(&api, &key, "call_api_write", create).await["id"], first["id"]);
}

#[tokio::test]
async fn the_key_of_a_tool_that_is_an_operation_is_an_argument_or_the_header() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let argued = json!({"name": "F", "idempotencyKey": "as-an-argument"});
    let first = called(&api, &key, "folders_create", argued.clone()).await;
    assert_eq!(called(&api, &key, "folders_create", argued).await["id"], first["id"]);
    let in_header = async |arguments: Value| {
        let params = json!({"name": "folders_create", "arguments": arguments});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let headers = [("idempotency-key", "as-a-header")];
        let (_, _, answer) = post(&api, Some(&key), "/api/mcp", &headers, body.to_string()).await;
        answer["result"]["structuredContent"].clone()
    };
    let second = in_header(json!({"name": "G"})).await;
    assert!(second["id"].is_string(), "{second}");
    assert_eq!(in_header(json!({"name": "G"})).await["id"], second["id"]);
    let first_again = in_header(json!({"name": "F", "idempotencyKey": "as-an-argument"})).await;
    assert_eq!(first_again["id"], first["id"], "the argument has precedence");
    let folders = called(&api, &key, "folders_list", json!({})).await;
    assert_eq!(folders["folders"].as_array().unwrap().len(), 2, "{folders}");
    let listed = tools(&api, &key, "/api/mcp?toolsets=folders,default").await;
    let lists_key = |name: &str| {
        let tool = listed.iter().find(|tool| tool["name"] == name).unwrap_or_else(|| panic!("{name}"));
        tool["inputSchema"]["properties"].get("idempotencyKey").is_some()
    };
    for name in ["folders_create", "forms_create", "pages_create", "launch_create", "call_api_write"] {
        assert!(lists_key(name), "{name}");
    }
    for name in ["folders_list", "folders_update", "folders_delete", "call_api_read", "call_api_delete"] {
        assert!(!lists_key(name), "{name}");
    }
    for (name, arguments) in [
        ("folders_list", json!({"idempotencyKey": "k"})),
        ("folders_delete", json!({"id": first["id"], "idempotencyKey": "k"})),
        ("folders_update", json!({"id": first["id"], "name": "H", "idempotencyKey": "k"})),
        ("call_api_read", json!({"operation": "folders.list", "idempotencyKey": "k"})),
        (
            "call_api_delete",
            json!({"operation": "folders.delete", "params": {"id": first["id"]}, "idempotencyKey": "k"}),
        ),
        ("folders_create", json!({"name": "F", "idempotencyKey": ["k"]})),
    ] {
        let refused = call(&api, &key, name, arguments.clone()).await;
        let problem = &refused["structuredContent"];
        assert_eq!(
            (&refused["isError"], &problem["status"]),
            (&json!(true), &json!(400)),
            "{name} {arguments}: {refused}"
        );
    }
    let folders = called(&api, &key, "folders_list", json!({})).await;
    assert_eq!(folders["folders"].as_array().unwrap().len(), 2, "{folders}");
}

#[tokio::test]
async fn a_restricted_key_is_restricted_here_too() {
    let api = Api::start(&[]).await;
    let (key, account_id) = api.trial_on(Plan::Pro).await;
    let folder = called(&api, &key, "folders_create", json!({"name": "F"})).await;
    let page = |slug: &str| json!({"slug": slug, "title": "T", "html": "x"});
    let outside = called(&api, &key, "pages_create", page("outside")).await;
    let restrictions = Restrictions {
        folder_id: Some(folder["id"].as_str().unwrap().parse().unwrap()),
        ..Restrictions::default()
    };
    let scopes = ScopeSet::parse(["pages:read", "pages:create"]).unwrap();
    let (_, restricted) = api.insert_key(account_id, scopes, restrictions, None).await;
    let read = call(&api, &restricted, "pages_read", json!({"id": outside["id"]})).await;
    assert_eq!((&read["isError"], read.get("html")), (&json!(true), None), "{read}");
    assert_eq!(called(&api, &restricted, "pages_list", json!({})).await["pages"], json!([]));
    let inside = called(&api, &restricted, "pages_create", page("inside")).await;
    assert_eq!(inside["folderId"], folder["id"], "{inside}");
    let other = called(&api, &key, "folders_create", json!({"name": "G"})).await;
    let mut elsewhere = page("elsewhere");
    elsewhere["folderId"] = other["id"].clone();
    let create = call(&api, &restricted, "pages_create", elsewhere).await;
    assert_eq!(create["isError"], true, "{create}");
    assert_eq!(
        called(&api, &restricted, "pages_list", json!({})).await["pages"].as_array().unwrap().len(),
        1
    );
}

#[tokio::test]
async fn a_refusal_of_the_api_is_a_result_with_its_problem() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let missing = json!({"id": "00000000-0000-4000-8000-000000000000"});
    let page = json!({"slug": "a", "title": "T", "html": "x"});
    let reader = api.key_with(&key, ScopeSet::parse(["pages:read"]).unwrap()).await;
    for (key, name, arguments, status, code) in [
        (&key, "pages_read", missing, 404, "not_found"),
        (
            &key,
            "pages_create",
            json!({"slug": "Not A Slug", "title": "T", "html": "x"}),
            400,
            "validation_failed",
        ),
        (&key, "pages_create", json!({"slug": "a"}), 400, "validation_failed"),
        (
            &key,
            "pages_create",
            json!({"slug": "a", "title": "T", "html": "x", "colour": "red"}),
            400,
            "validation_failed",
        ),
        (&key, "pages_read", json!({"id": {"a": 1}}), 400, "validation_failed"),
        (&key, "search_api", json!({"words": "x"}), 400, "validation_failed"),
        (&key, "describe_api", json!({"operation": "pages.creat"}), 404, "not_found"),
        (&key, "call_api_read", json!({"operation": "nothing"}), 404, "not_found"),
        (
            &key,
            "call_api_write",
            json!({"operation": "pages.create", "idempotencyKey": "ä\n"}),
            400,
            "validation_failed",
        ),
        (&reader, "pages_create", page, 403, "insufficient_scope"),
    ] {
        let result = call(&api, key, name, arguments.clone()).await;
        let problem = &result["structuredContent"];
        assert_eq!(result["isError"], true, "{name} {arguments}: {result}");
        assert_eq!(
            (&problem["status"], &problem["code"]),
            (&json!(status), &json!(code)),
            "{name} {arguments}"
        );
        assert!(problem["requestId"].is_string() && problem["detail"].is_string(), "{problem}");
        let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(&text, problem);
    }
    let unknown = legacy(&api, &key, "tools/call", json!({"name": "pages_creat"})).await;
    assert_eq!(unknown["error"]["code"], -32602);
    assert!(unknown["error"]["message"].as_str().unwrap().contains("pages.create"), "{unknown}");
}

#[tokio::test]
async fn a_file_is_text_without_structure() {
    let api = Api::start(&[]).await;
    let (key, _) = api.trial_on(Plan::Pro).await;
    let form = json!({"name": "F", "fields": [{"name": "email", "label": "E-mail", "type": "email"}]});
    let form = called(&api, &key, "forms_create", form).await;
    let result = call(&api, &key, "submissions_export", json!({"id": form["formId"]})).await;
    assert_eq!(result["isError"], false, "{result}");
    assert!(result["content"][0]["text"].as_str().unwrap().contains("email"), "{result}");
    assert!(result.get("structuredContent").is_none());
}

#[tokio::test]
async fn what_another_service_serves_is_named_with_its_address() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let found = called(&api, &key, "search_api", json!({"query": "submit answers"})).await;
    assert!(!found["operations"].to_string().contains("\"submissions.submit\""), "{found}");
    let result = call(&api, &key, "submissions.submit", json!({"id": "a-form"})).await;
    let problem = &result["structuredContent"];
    assert_eq!((&result["isError"], &problem["code"]), (&json!(true), &json!("not_found")), "{result}");
    let hint = "send it by HTTP: POST http://localhost:8080/api/forms/{id}/submit";
    assert_eq!(problem["hint"], hint, "{problem}");
}

#[tokio::test]
async fn a_call_keeps_the_request_id() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "account_read"}});
    let headers = [("x-request-id", "an-id-of-the-client")];
    let (_, headers, answer) = post(&api, Some(&key), "/api/mcp", &headers, body.to_string()).await;
    assert_eq!(headers["x-request-id"], "an-id-of-the-client");
    assert_eq!(
        answer["result"]["structuredContent"]["_meta"]["requestId"], "an-id-of-the-client",
        "{answer}"
    );
}

#[tokio::test]
async fn a_call_comes_from_the_address_of_the_client() {
    let api = Api::start(&["trial.max_per_hour=1"]).await;
    let key = api.trial().await;
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "trial.create"}});
    let create = async |ip: &str| {
        let headers = [("x-edge-token", "a-token-for-tests-alone"), ("x-client-ip", ip)];
        let (_, _, answer) = post(&api, Some(&key), "/api/mcp", &headers, body.to_string()).await;
        answer["result"]["structuredContent"]["code"].as_str().unwrap_or("created").to_owned()
    };
    for (ip, outcome) in [("192.0.2.1", "created"), ("192.0.2.1", "rate_limited"), ("192.0.2.2", "created")] {
        assert_eq!(create(ip).await, outcome, "{ip}");
    }
}
