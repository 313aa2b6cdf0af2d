//! Suggestions are valid calls: their params match the operation's input, placeholders included.

use domain::plans::Plan;
use http::{Method, StatusCode};
use serde_json::{Map, Value, json};

use crate::harness::Api;

/// The input of an operation: path, query and body as one object.
fn input_schema(document: &Value, operation_id: &str) -> Value {
    let operations =
        document["paths"].as_object().unwrap().values().flat_map(|path| path.as_object().unwrap().values());
    let operation = operations.into_iter().find(|one| one["operationId"] == operation_id);
    let operation = operation.unwrap_or_else(|| panic!("no operation {operation_id}"));
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for parameter in operation["parameters"].as_array().into_iter().flatten() {
        let name = parameter["name"].as_str().unwrap();
        properties.insert(name.to_owned(), parameter["schema"].clone());
        required.extend((parameter["required"] == true).then(|| json!(name)));
    }
    let body = &operation["requestBody"]["content"]["application/json"]["schema"];
    if let Some(name) = body["$ref"].as_str() {
        let body = document.pointer(&name[1..]).unwrap();
        properties.extend(body["properties"].as_object().unwrap().clone());
        required.extend(body["required"].as_array().cloned().unwrap_or_default());
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object", "properties": properties, "required": required, "additionalProperties": false,
        "components": document["components"],
    })
}

fn check(document: &Value, made_by: &str, response: &Value) -> Vec<String> {
    let suggestions = response["_next"].as_array().cloned().unwrap_or_default();
    assert!(!suggestions.is_empty(), "{made_by} suggests nothing: {response}");
    let mut wrong = Vec::new();
    for suggestion in &suggestions {
        let tool = suggestion["tool"].as_str().unwrap();
        let schema = input_schema(document, tool);
        let validator = jsonschema::options().should_validate_formats(true).build(&schema).unwrap();
        wrong.extend(
            validator
                .iter_errors(&suggestion["params"])
                .map(|error| format!("{made_by} suggests {tool}: {error} at {}", error.instance_path())),
        );
        for text in ["intent", "hint"] {
            assert!(suggestion[text].as_str().is_some_and(|text| !text.is_empty()), "{suggestion}");
        }
    }
    wrong
}

#[tokio::test]
async fn suggestions_after_a_create_match_their_operations() {
    let document = serde_json::to_value(control_plane::api::document()).unwrap();
    let api = Api::start(&[]).await;
    let (status, trial) = api.send(Method::POST, "/api/trial", None, &Value::Null).await;
    assert_eq!(status, StatusCode::CREATED);
    let mut wrong = check(&document, "trial.create", &trial);
    let (key, _) = api.trial_on(Plan::Scale).await;
    let fields = json!([{"name": "a", "label": "A", "type": "text"}]);
    let stop = json!({"id": "end", "type": "stop", "status": "success"});
    let creations = [
        ("/api/folders", json!({"name": format!("  {}  ", "x".repeat(80))})),
        ("/api/keys", json!({"label": "K"})),
        ("/api/account/subdomains", json!({"name": "another-one"})),
        ("/api/account/domains", json!({"domain": "www.example.com"})),
        ("/api/pages", json!({"slug": "index", "title": "T", "html": "x"})),
        ("/api/forms", json!({"name": "F", "fields": fields})),
        ("/api/webhooks", json!({"url": "https://example.com/hook"})),
        ("/api/analytics/sites", json!({"name": "S"})),
        ("/api/automations", json!({"name": "A", "slug": "a", "trigger": {"type": "http"}, "steps": [stop]})),
    ];
    for (path, body) in creations {
        let (status, response) = api.send(Method::POST, path, Some(&key), &body).await;
        assert_eq!(status, StatusCode::CREATED, "{path}: {response}");
        wrong.extend(check(&document, path, &response));
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn an_invalid_suggestion_is_detected() {
    let document = serde_json::to_value(control_plane::api::document()).unwrap();
    let suggest = |params: Value| json!({"_next": [{"intent": "i", "hint": "h", "tool": "folders.organize", "params": params}]});
    let id = "00000000-0000-0000-0000-000000000000";
    let right = json!({"id": id, "resources": [{"type": "page", "id": id}]});
    assert_eq!(check(&document, "a test", &suggest(right)), Vec::<String>::new());
    for wrong in [
        json!({"resources": [{"type": "page", "id": id}]}),
        json!({"id": "x", "resources": [{"type": "page", "id": id}]}),
        json!({"id": id, "resources": []}),
        json!({"id": id, "resources": [{"type": "cat", "id": id}]}),
        json!({"id": id, "resources": [{"type": "page", "id": id}], "colour": 1}),
    ] {
        assert_eq!(check(&document, "a test", &suggest(wrong.clone())).len(), 1, "{wrong}");
    }
}
