//! Workflows: public presets, and forms created from them.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::harness::Api;

#[tokio::test]
async fn presets_are_public() {
    let api = Api::start(&[]).await;
    let (status, list) = api.send(Method::GET, "/api/workflows", None, &Value::Null).await;
    let list = list["workflows"].as_array().cloned().unwrap();
    assert_eq!((status, list.len()), (StatusCode::OK, 14));
    let (status, one) = api.send(Method::GET, "/api/workflows/contact", None, &Value::Null).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(one, list[0]);
    assert_eq!((&one["category"], &one["fields"][1]["type"]), (&json!("lead-gen"), &json!("email")));
    let (status, problem) = api.send(Method::GET, "/api/workflows/nothing", None, &Value::Null).await;
    assert_eq!((status, &problem["code"]), (StatusCode::NOT_FOUND, &json!("not_found")));
}

#[tokio::test]
async fn a_form_of_a_preset_has_its_fields() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let (_, preset) = api.send(Method::GET, "/api/workflows/order", None, &Value::Null).await;
    let (status, created) = api.send(Method::POST, "/api/workflows/order", Some(&key), &Value::Null).await;
    assert_eq!(status, StatusCode::CREATED, "{created}");
    let path = format!("/api/forms/{}", created["formId"].as_str().unwrap());
    let (_, form) = api.send(Method::GET, &path, Some(&key), &Value::Null).await;
    let mut fields = preset["fields"].clone();
    // The field of type file has the limit of the free plan.
    fields[6]["effectiveMaxFileSize"] = json!(domain::plans::Plan::Free.limits().asset_size_limit);
    assert_eq!((&form["name"], &form["fields"]), (&preset["name"], &fields));
    let (status, problem) = api.send(Method::POST, "/api/workflows/nothing", Some(&key), &Value::Null).await;
    assert_eq!((status, &problem["code"]), (StatusCode::NOT_FOUND, &json!("not_found")));
}
