//! The address of a chat brings the chat's template, unless the request names one.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::settings::Owner;

#[tokio::test]
async fn the_address_of_a_chat_brings_its_template() {
    let owner = Owner::new(&[]).await;
    for (url, template) in [
        ("https://hooks.slack.com/services/T/B/x", "slack"),
        ("https://discord.com/api/webhooks/1/t", "discord"),
        ("https://prod-1.westeurope.logic.azure.com/workflows/a/triggers/manual/paths/invoke", "teams"),
        ("https://chat.googleapis.com/v1/spaces/A/messages?key=k&token=t", "google-chat"),
    ] {
        let (path, created) = owner.webhook(json!({"url": url})).await;
        let said = |response: &Value| (response["template"].clone(), response["templateDetected"].clone());
        assert_eq!(said(&created), (json!(template), json!(true)), "{url}");
        assert_eq!(owner.get(&path).await["template"], template);

        let (_, plain) = owner.webhook(json!({"url": url, "template": "default"})).await;
        assert_eq!(said(&plain), (json!("default"), json!(false)), "a named template stays");
    }
    let (_, other) = owner.webhook(json!({"url": "https://example.com/hook"})).await;
    assert_eq!((&other["template"], &other["templateDetected"]), (&json!("default"), &json!(false)));
}

#[tokio::test]
async fn a_new_address_of_a_chat_brings_its_template_too() {
    let owner = Owner::new(&[]).await;
    let (path, _) = owner.webhook(json!({"url": "https://example.com/hook"})).await;
    let slack = "https://hooks.slack.com/services/T/B/x";
    for (change, template, detected) in [
        (json!({"description": "D"}), "default", false),
        (json!({"url": slack}), "slack", true),
        (json!({"url": "https://example.com/hook"}), "default", false),
        (json!({"url": "https://discord.com/api/webhooks/1/t", "template": "default"}), "default", false),
        (json!({"url": slack}), "default", false),
        (json!({"template": "slack"}), "slack", false),
        (json!({"url": "https://discord.com/api/webhooks/1/t"}), "discord", true),
        (json!({"url": "https://example.com/hook", "template": "teams"}), "teams", false),
        (json!({"url": slack}), "teams", false),
    ] {
        let (status, changed) = owner.call(Method::PATCH, &path, change.clone()).await;
        assert_eq!(status, StatusCode::OK, "{changed}");
        assert_eq!(
            (&changed["template"], &changed["templateDetected"]),
            (&json!(template), &json!(detected)),
            "{change}"
        );
    }
}
