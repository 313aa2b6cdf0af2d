//! Suggestions are valid calls: their params match the operation's input, placeholders included.

use std::collections::BTreeSet;

use domain::plans::Plan;
use http::{Method, StatusCode};
use serde_json::{Map, Value, json};

use super::tools::{Tools, tool_names};
use crate::harness::Api;

/// Creates one of everything and returns each response, with the name of the call.
async fn create_everything(api: &Api, key: &str, subdomain: &str) -> Vec<(String, Value)> {
    let mut responses: Vec<(String, Value)> = Vec::new();
    let mut create = async |method: Method, path: &str, body: Value| {
        let (status, response) = api.send(method, path, Some(key), &body).await;
        assert!(status.is_success(), "{path}: {status} {response}");
        let is_batch = path.ends_with("batch") || path == "/api/status";
        assert!(status == StatusCode::CREATED || is_batch, "{path}: {status} {response}");
        responses.push((path.to_owned(), response.clone()));
        response
    };
    let fields = json!([{"name": "a", "label": "A", "type": "text"}]);
    let stop = json!({"id": "end", "type": "stop", "status": "success"});
    let post = Method::POST;
    create(post.clone(), "/api/folders", json!({"name": format!("  {}  ", "x".repeat(80))})).await;
    create(post.clone(), "/api/keys", json!({"label": "K"})).await;
    create(post.clone(), "/api/account/subdomains", json!({"name": subdomain})).await;
    create(post.clone(), "/api/account/domains", json!({"domain": "www.example.com"})).await;
    let page = json!({"slug": "index", "title": "T", "html": "x", "entryTemplate": "<p>{{a}}</p>"});
    let page = create(post.clone(), "/api/pages", page).await;
    let page_id = page["id"].as_str().unwrap();
    create(post.clone(), &format!("/api/pages/{page_id}/entries"), json!({"data": {"a": "1"}})).await;
    let pages = json!({"pages": [{"slug": "more", "title": "T", "html": "x"}]});
    create(post.clone(), "/api/pages/batch", pages.clone()).await;
    let image = json!({"filename": "a.png", "contentType": "image/png", "sizeBytes": 10});
    create(post.clone(), "/api/pages/assets", image).await;
    create(post.clone(), "/api/deploy", json!({"sizeBytes": 10})).await;
    let form = create(post.clone(), "/api/forms", json!({"name": "F", "fields": fields})).await;
    create(post.clone(), "/api/workflows/contact", Value::Null).await;
    let form_id = form["formId"].as_str().unwrap();
    let submission = json!({"externalId": "1", "payload": {"a": "1"}});
    create(Method::PUT, &format!("/api/forms/{form_id}/submissions/upsert"), submission).await;
    create(post.clone(), "/api/webhooks", json!({"url": "https://example.com/hook"})).await;
    create(post.clone(), "/api/analytics/sites", json!({"name": "S"})).await;
    let automation = json!({"name": "A", "slug": "a", "trigger": {"type": "http"}, "steps": [stop]});
    create(post.clone(), "/api/automations", automation).await;
    create(post.clone(), "/api/help", json!({"category": "Help", "subject": "S", "message": "M"})).await;
    create(post.clone(), "/api/launch", json!({"pages": [{"slug": "launched", "title": "T", "html": "x"}]}))
        .await;
    create(post, "/api/pipeline", json!({"name": "P", "fields": fields})).await;
    create(Method::GET, "/api/status", Value::Null).await;
    responses
}

#[tokio::test]
async fn every_creation_suggests_valid_calls() {
    let tools = Tools::read();
    let api = Api::start(&[]).await;
    let (status, trial) = api.send(Method::POST, "/api/trial", None, &Value::Null).await;
    assert_eq!(status, StatusCode::CREATED);
    let mut wrong = tools.check("trial.create", &trial);
    for plan in [Plan::Pro, Plan::Scale] {
        let (key, _) = api.trial_on(plan).await;
        for (made_by, response) in create_everything(&api, &key, &format!("site-of-{}", plan.as_str())).await
        {
            wrong.extend(tools.check(&made_by, &response));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

/// What exists is skipped, so after one of everything no creation is left but that of what only a person names.
#[tokio::test]
async fn an_account_with_everything_is_asked_to_create_nothing() {
    let api = Api::start(&[]).await;
    let (key, _) = api.trial_on(Plan::Scale).await;
    let responses = create_everything(&api, &key, "another-one").await;
    let names: BTreeSet<String> = responses
        .iter()
        .filter(|(path, _)| path == "/api/status")
        .flat_map(|(_, one)| tool_names(one))
        .collect();
    assert!(!names.is_empty());
    for has in ["pages.create", "forms.create", "webhooks.create", "analytics.create", "domains.create"] {
        let is_embedding = has == "pages.create";
        assert!(is_embedding || !names.contains(has), "{names:?}");
    }
}

#[test]
fn an_invalid_suggestion_is_detected() {
    let tools = Tools::read();
    let suggest = |params: Value| json!({"_next": [{"intent": "i", "hint": "h", "tool": "folders.organize", "params": params}]});
    let id = "00000000-0000-0000-0000-000000000000";
    let right = json!({"id": id, "resources": [{"type": "page", "id": id}]});
    assert_eq!(tools.check("a test", &suggest(right)), Vec::<String>::new());
    for wrong in [
        json!({"resources": [{"type": "page", "id": id}]}),
        json!({"id": "x", "resources": [{"type": "page", "id": id}]}),
        json!({"id": id, "resources": []}),
        json!({"id": id, "resources": [{"type": "cat", "id": id}]}),
        json!({"id": id, "resources": [{"type": "page", "id": id}], "colour": 1}),
    ] {
        assert_eq!(tools.check("a test", &suggest(wrong.clone())).len(), 1, "{wrong}");
    }
}

/// The suggestions of a trial are all possible, each on a trial of its own.
#[tokio::test]
async fn each_suggestion_of_a_trial_works() {
    let tools = Tools::read();
    let api = Api::start(&["trial.max_per_hour=100", "trial.max_per_day=100"]).await;
    let (_, trial) = api.send(Method::POST, "/api/trial", None, &Value::Null).await;
    for suggestion in trial["_next"].as_array().unwrap() {
        let key = api.trial().await;
        let (status, response) = tools.call(&api, &key, suggestion).await;
        assert!(status.is_success(), "{suggestion}: {status} {response}");
    }
}

/// The first suggestions are followed until the public submission, which this service does not serve.
#[tokio::test]
async fn the_first_suggestions_of_every_plan_can_be_followed() {
    let tools = Tools::read();
    let api = Api::start(&[]).await;
    for plan in Plan::ALL {
        let (key, _) = api.trial_on(plan).await;
        let mut done: Vec<Value> = Vec::new();
        loop {
            let (_, status) = api.send(Method::GET, "/api/status", Some(&key), &Value::Null).await;
            let mut next = status["_next"][0].clone();
            assert!(!done.contains(&next["params"]), "{next} comes twice");
            done.push(next["params"].clone());
            if next["tool"] == "submissions.submit" {
                break;
            }
            if next["tool"] == "webhooks.create" {
                next["params"]["url"] = json!("https://example.com/hook");
            }
            let (code, response) = tools.call(&api, &key, &next).await;
            assert!(code.is_success(), "{next}: {code} {response}");
        }
        assert!(done.len() >= 4, "{done:?}");
        let first = done[0].as_object().map(Map::len);
        assert_eq!(first, Some(3));
    }
}
