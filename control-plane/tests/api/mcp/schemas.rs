//! The listed schemas hold for what tools take and answer: official clients check both and fail where they don't.

use std::collections::BTreeMap;

use domain::plans::Plan;
use http::Method;
use jsonschema::Validator;
use serde_json::{Value, json};

use super::client::{call, tools};
use crate::harness::Api;

/// No worker has to end what the examples start.
const SETTINGS: [&str; 3] =
    ["automations.test_timeout=0s", "webhooks.test_timeout=0s", "domains.recheck_after=0s"];

/// Examples that need an upload, ClickHouse or a signed-in person; tests/e2e plays them too. Their refusals fit the schemas.
const NOT_PLAYED: &[&str] = &[
    "deploys.process",
    "deploys.publish",
    "deploys.rollback",
    "analytics.query",
    "analytics.overview",
    "analytics.realtime",
    "analytics.sessions",
    "analytics.funnel",
    "analytics.drop_off",
    "analytics.retention",
    "sessions.current",
    "sessions.delete",
];

/// The listed schemas of a tool.
struct Listed {
    input: Validator,
    output: Option<Validator>,
}

async fn listed(api: &Api, key: &str) -> BTreeMap<String, Listed> {
    let validator = |schema: &Value| jsonschema::validator_for(schema).unwrap();
    let tools = tools(api, key, "/api/mcp?toolsets=all").await;
    let schemas = tools.iter().map(|tool| {
        let output = tool.get("outputSchema").map(validator);
        (tool["name"].as_str().unwrap().to_owned(), Listed { input: validator(&tool["inputSchema"]), output })
    });
    schemas.collect()
}

fn errors(validator: &Validator, value: &Value) -> Vec<String> {
    validator.iter_errors(value).map(|error| format!("{} {error}", error.instance_path())).collect()
}

/// Replaces the placeholders in the params of an example; `None` if one has no value.
fn filled(params: &Value, values: &BTreeMap<String, String>) -> Option<Value> {
    let mut text = params.to_string();
    for (name, value) in values.iter().rev() {
        text = text.replace(name, value);
    }
    let is_open = text.match_indices('$').any(|(at, _)| text[at + 1..].starts_with(char::is_alphanumeric));
    (!is_open).then(|| serde_json::from_str(&text).unwrap())
}

#[tokio::test]
async fn every_example_fits_the_listed_schemas() {
    let api = Api::start(&SETTINGS).await;
    let (key, _) = api.trial_on(Plan::Pro).await;
    let schemas = listed(&api, &key).await;
    let (_, schema) = api.send(Method::GET, "/api/schema", None, &Value::Null).await;
    let lists = ["endpoints", "extensions"].map(|name| schema[name].as_array().unwrap().clone());
    let mut endpoints = lists.concat();
    endpoints.sort_by_key(|endpoint| endpoint["example"]["step"].as_u64());
    let mut values = BTreeMap::from([("$unique".to_owned(), "x1".to_owned())]);
    let (mut played, mut skipped, mut wrong) = (0, Vec::new(), Vec::new());
    for endpoint in endpoints {
        let (id, example) = (endpoint["operation"].as_str().unwrap(), &endpoint["example"]);
        let tool = id.replace('.', "_");
        let Some(listed) = schemas.get(&tool) else { continue };
        let Some(params) = filled(&example["params"], &values) else {
            skipped.push(id.to_owned());
            continue;
        };
        let result = call(&api, &key, &tool, params.clone()).await;
        let answer = &result["structuredContent"];
        wrong.extend(errors(&listed.input, &params).into_iter().map(|error| format!("{tool} takes {error}")));
        let output = listed.output.as_ref().filter(|_| answer.is_object());
        let faults = output.map(|output| errors(output, answer)).unwrap_or_default();
        wrong.extend(faults.into_iter().map(|error| format!("{tool} answers {error}")));
        if result["isError"] == true {
            skipped.push(id.to_owned());
            continue;
        }
        played += 1;
        if id == "forms.create" {
            // The edge takes the submission of the example.
            let path = format!("/api/forms/{}/submissions/upsert", answer["formId"].as_str().unwrap());
            let body =
                json!({"externalId": "first", "payload": {"email": "ana@example.com", "team": "Kitchen"}});
            let (_, submission) = api.send(Method::PUT, &path, Some(&key), &body).await;
            let id = submission["data"]["id"].as_str().unwrap();
            values.insert("$submissionId".to_owned(), id.to_owned());
        }
        for (name, pointer) in example["keep"].as_object().into_iter().flatten() {
            let value = answer.pointer(pointer.as_str().unwrap()).and_then(Value::as_str);
            let value = value.unwrap_or_else(|| panic!("{id}: no {pointer} in {answer}"));
            values.insert(name.clone(), value.to_owned());
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    assert_eq!(skipped, NOT_PLAYED, "{played} examples succeeded");
}

#[tokio::test]
async fn every_refusal_fits_the_listed_schemas() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let problem = json!({
        "type": "urn:web-runtime:problem:quota_exceeded", "title": "T", "status": 403, "code": "quota_exceeded",
        "detail": "d", "error": "d", "requestId": "r", "hint": "h", "retryAfterSeconds": 2,
        "fieldErrors": [{"field": "a", "code": "b", "message": "m"}], "existingPageId": "p",
        "updatedAt": "2026-11-01T00:00:00Z", "requiredScope": "pages:read", "limit": 3, "used": 3,
        "upgradeUrl": "u", "runId": "r", "_meta": {},
    });
    let (_, document) = api.send(Method::GET, "/api/openapi.json", None, &Value::Null).await;
    for name in document["components"]["schemas"]["Problem"]["properties"].as_object().unwrap().keys() {
        assert!(problem.get(name).is_some(), "{name} is not in the example");
    }
    let mut wrong = Vec::new();
    for (tool, listed) in listed(&api, &key).await {
        let Some(output) = listed.output else { continue };
        let result = call(&api, &key, &tool, json!({"no such argument": 1})).await;
        assert_eq!(result["isError"], true, "{tool}: {result}");
        for refusal in [&problem, &result["structuredContent"]] {
            wrong.extend(errors(&output, refusal).into_iter().map(|error| format!("{tool}: {error}")));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[tokio::test]
async fn null_is_listed_where_it_clears_a_value() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let schemas = listed(&api, &key).await;
    let id = "00000000-0000-4000-8000-000000000000";
    for (tool, params) in [
        ("pages_update", json!({"id": id, "css": null, "folderId": null, "publishAt": null})),
        ("forms_update", json!({"id": id, "closesAt": null, "uniqueBy": null, "notifyEmail": null})),
        ("webhooks_update", json!({"id": id, "description": null, "fieldMapping": null})),
        ("domains_update", json!({"id": id, "redirectTo": null})),
        ("folders_update", json!({"id": id, "description": null})),
        ("account_update", json!({"name": null})),
        ("launch_create", json!({"pages": [{"slug": "index", "title": "T", "html": "x", "css": null}]})),
    ] {
        assert_eq!(errors(&schemas[tool].input, &params), Vec::<String>::new(), "{tool}");
    }
    let wrong = json!({"id": id, "css": 7});
    assert!(!errors(&schemas["pages_update"].input, &wrong).is_empty());
}
