//! The look of a form: its logo, colour and corners, and the renderings of fields.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::harness::Api;

/// Creates an asset and returns its id.
async fn asset(api: &Api, key: &str, filename: &str, content_type: &str) -> Value {
    let asset = json!({"filename": filename, "contentType": content_type, "sizeBytes": 10});
    let (status, created) = api.send(Method::POST, "/api/pages/assets", Some(key), &asset).await;
    assert_eq!(status, StatusCode::CREATED, "{created}");
    created["id"].clone()
}

fn form(appearance: &Value) -> Value {
    let field = json!({"name": "nps", "label": "N", "type": "number", "min": 0, "max": 10, "display": "scale", "help": "H"});
    json!({"name": "F", "fields": [field], "appearance": appearance})
}

#[tokio::test]
async fn a_look_is_stored_and_changed_setting_by_setting() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let logo = asset(&api, &key, "logo.png", "image/png").await;
    let look = json!({"logoAssetId": logo, "accent": "#0f766e", "radius": 4});
    let (status, created) = api.send(Method::POST, "/api/forms", Some(&key), &form(&look)).await;
    assert_eq!(status, StatusCode::CREATED, "{created}");
    let path = format!("/api/forms/{}", created["formId"].as_str().unwrap());
    let (_, read) = api.send(Method::GET, &path, Some(&key), &Value::Null).await;
    assert_eq!(read["appearance"], look, "{read}");
    assert_eq!((&read["fields"][0]["display"], &read["fields"][0]["help"]), (&json!("scale"), &json!("H")));
    let change = json!({"appearance": {"logoAssetId": null, "radius": 0}});
    let (_, changed) = api.send(Method::PUT, &path, Some(&key), &change).await;
    assert_eq!(
        changed["appearance"],
        json!({"logoAssetId": null, "accent": "#0f766e", "radius": 0}),
        "{changed}"
    );
}

#[tokio::test]
async fn css_injection_and_a_logo_of_another_account_are_refused() {
    let api = Api::start(&[]).await;
    let (key, other) = (api.trial().await, api.trial().await);
    let theirs = asset(&api, &other, "logo.png", "image/png").await;
    let text = asset(&api, &key, "a.txt", "text/plain").await;
    for (look, status, field) in [
        (json!({"accent": "red;}body{background:url(//evil.test)}"}), 400, "appearance.accent"),
        (json!({"radius": 1_000}), 400, "appearance.radius"),
        (json!({"logoAssetId": text}), 400, "appearance.logoAssetId"),
        (json!({"logoAssetId": theirs}), 404, ""),
    ] {
        let (answered, problem) = api.send(Method::POST, "/api/forms", Some(&key), &form(&look)).await;
        assert_eq!(answered.as_u16(), status, "{look}: {problem}");
        if !field.is_empty() {
            assert_eq!(problem["fieldErrors"][0]["field"], field, "{problem}");
        }
    }
}

#[tokio::test]
async fn a_wrong_look_is_reported_before_the_form_is_looked_up() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let path = format!("/api/forms/{}", uuid::Uuid::nil());
    for (look, field) in
        [(json!({"accent": "red"}), "appearance.accent"), (json!({"radius": 25}), "appearance.radius")]
    {
        let (status, problem) = api.send(Method::PUT, &path, Some(&key), &json!({"appearance": look})).await;
        assert_eq!(
            (status, &problem["fieldErrors"][0]["field"]),
            (StatusCode::BAD_REQUEST, &json!(field)),
            "{problem}"
        );
    }
}
