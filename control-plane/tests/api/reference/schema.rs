//! `GET /api/schema`: every endpoint with its schemas, errors, limits and an example.

use std::collections::BTreeMap;

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::harness::Api;

async fn schema(api: &Api, query: &str) -> Value {
    let (status, schema) = api.send(Method::GET, &format!("/api/schema{query}"), None, &Value::Null).await;
    assert_eq!(status, StatusCode::OK, "{schema}");
    schema
}

fn list<'a>(schema: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    schema[name].as_array().unwrap().iter()
}

#[tokio::test]
async fn the_categories_have_the_counts_of_the_specification() {
    let api = Api::start(&[]).await;
    let specified: Vec<Value> = serde_json::from_str(include_str!("../endpoints.json")).unwrap();
    let mut counts = BTreeMap::new();
    for one in &specified {
        *counts.entry(one["category"].as_str().unwrap()).or_insert(0) += 1;
    }
    let whole = schema(&api, "").await;
    let listed: BTreeMap<&str, i64> = list(&whole, "categories")
        .map(|one| (one["name"].as_str().unwrap(), one["count"].as_i64().unwrap()))
        .collect();
    assert_eq!(listed, counts);
    assert_eq!(list(&whole, "endpoints").count(), specified.len());
    let named = |endpoint: &Value| {
        let member = |name: &str| endpoint[name].as_str().unwrap().to_owned();
        (member("method"), member("path"), member("category"), member("auth"))
    };
    let mut listed: Vec<_> = list(&whole, "endpoints").map(named).collect();
    let mut expected: Vec<_> = specified.iter().map(named).collect();
    listed.sort();
    expected.sort();
    assert_eq!(listed, expected);

    for (category, count) in counts {
        let part = schema(&api, &format!("?category={category}")).await;
        assert_eq!(list(&part, "endpoints").count() as i64, count, "{category}");
        let all = list(&part, "endpoints").chain(list(&part, "extensions"));
        assert!(all.into_iter().all(|endpoint| endpoint["category"] == category), "{category}");
        assert_eq!(part["categories"], whole["categories"]);
    }
}

#[tokio::test]
async fn an_unknown_category_is_rejected_with_the_known_ones() {
    let api = Api::start(&[]).await;
    let (status, problem) = api.send(Method::GET, "/api/schema?category=cats", None, &Value::Null).await;
    assert_eq!((status, &problem["fieldErrors"][0]["field"]), (StatusCode::BAD_REQUEST, &json!("category")));
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("trial, auth, pages") && detail.contains("system"), "{detail}");
}

#[tokio::test]
async fn every_endpoint_has_schemas_errors_and_an_example_that_fits_them() {
    let api = Api::start(&[]).await;
    let whole = schema(&api, "").await;
    let mut steps = Vec::new();
    for endpoint in list(&whole, "endpoints").chain(list(&whole, "extensions")) {
        let id = &endpoint["operation"];
        let with_definitions = |schema: &Value| {
            let mut schema = schema.clone();
            schema["$defs"] = whole["$defs"].clone();
            jsonschema::options().should_validate_formats(true).build(&schema).unwrap()
        };
        for schema in [&endpoint["request"], &endpoint["response"]] {
            if schema.is_object() {
                with_definitions(schema);
            }
        }
        assert!(!endpoint["summary"].as_str().unwrap().is_empty(), "{id}");
        let codes: Vec<_> = endpoint["errors"].as_array().unwrap().iter().map(|one| &one["code"]).collect();
        assert_eq!(codes.contains(&&json!("unauthenticated")), endpoint["auth"] != "none", "{id}");
        assert_eq!(codes.contains(&&json!("insufficient_scope")), endpoint["scopes"] != json!([]), "{id}");

        let example = &endpoint["example"];
        steps.push(example["step"].as_i64().unwrap_or_else(|| panic!("{id} has no example")));
        let curl = example["curl"].as_str().unwrap();
        assert!(curl.starts_with("curl ") && curl.contains("http://localhost:8080/api/"), "{id}: {curl}");
        let parameters = list(endpoint, "parameters").filter(|one| one["in"] != "header");
        let in_url: Vec<&str> = parameters.map(|one| one["name"].as_str().unwrap()).collect();
        let params = example["params"].as_object().unwrap().clone();
        let (_, body): (Vec<_>, Vec<_>) =
            params.into_iter().partition(|(name, _)| in_url.contains(&name.as_str()));
        if endpoint["request"].is_object() && !body.is_empty() {
            let body = Value::Object(body.into_iter().collect());
            let body: Value = serde_json::from_str(&filled(&body.to_string())).unwrap();
            let validator = with_definitions(&endpoint["request"]);
            let errors: Vec<String> = validator.iter_errors(&body).map(|error| error.to_string()).collect();
            assert_eq!(errors, Vec::<String>::new(), "{id}: {body}");
        }
    }
    steps.sort_unstable();
    assert_eq!(steps, (1..=steps.len() as i64).collect::<Vec<_>>(), "the steps are an order");
}

/// Fills each placeholder with a value of its kind.
fn filled(text: &str) -> String {
    let text = text.replace("$unique", "x1").replace("$since", "2026-11-01T00:00:00Z");
    let mut parts = text.split('$');
    let mut filled = parts.next().unwrap().to_owned();
    for part in parts {
        let length = part.find(|char: char| !char.is_ascii_alphanumeric()).unwrap_or(part.len());
        filled += if length > 0 { "00000000-0000-0000-0000-000000000000" } else { "$" };
        filled += &part[length..];
    }
    filled
}
