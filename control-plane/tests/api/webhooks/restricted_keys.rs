//! Keys that are restricted to forms, and webhooks that receive events of other forms too.

use std::collections::BTreeSet;

use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::settings::{Owner, hook};

#[tokio::test]
async fn a_key_restricted_to_one_form_can_not_silence_a_webhook_for_all_forms() {
    let owner = Owner::new(&[]).await;
    let (form, other) = (owner.form(&[]).await, owner.form(&[]).await);
    let linked =
        |forms: Value| json!({"url": "https://example.com/hook", "description": "D", "formIds": forms});
    let (of_all, all) = owner.webhook(hook()).await;
    let (of_both, both) = owner.webhook(linked(json!([form, other]))).await;
    let (of_other, foreign) = owner.webhook(linked(json!([other]))).await;
    let (_, own) = owner.webhook(linked(json!([form]))).await;
    let body = json!({"label": "k", "resourceIds": {"forms": [form]}});
    let (_, key) = owner.call(Method::POST, "/api/keys", body).await;
    let key = key["key"].as_str();
    let form_path = format!("/api/forms/{form}");
    let relink =
        async |ids: Value| owner.api.send(Method::PUT, &form_path, key, &json!({"webhookIds": ids})).await;
    for webhook in [&all, &foreign] {
        let (status, problem) = relink(json!([webhook["id"]])).await;
        assert_eq!(
            (status, &problem["code"]),
            (StatusCode::FORBIDDEN, &json!("insufficient_scope")),
            "{problem}"
        );
    }
    let (status, form_view) = relink(json!([])).await;
    assert_eq!(status, StatusCode::OK, "{form_view}");
    assert_eq!(form_view["webhookIds"], json!([both["id"]]), "the webhook of another form too stays linked");
    assert_eq!(owner.get(&of_all).await["allForms"], true);
    assert_eq!(owner.get(&of_both).await["formIds"].as_array().unwrap().len(), 2);
    assert_eq!(owner.get(&of_other).await["formIds"], json!([other]));
    assert_eq!(
        relink(json!([own["id"], both["id"]])).await.0,
        StatusCode::OK,
        "its own webhook may be linked again"
    );
    assert_eq!(
        owner.call(Method::PUT, &form_path, json!({"webhookIds": [all["id"]]})).await.0,
        StatusCode::OK
    );
}

#[tokio::test]
async fn a_key_restricted_to_one_form_reads_only_id_and_name_of_webhooks_of_others() {
    let owner = Owner::new(&["webhooks.test_timeout=1ms"]).await;
    let (form, other) = (owner.form(&[]).await, owner.form(&[]).await);
    let linked =
        |forms: Value| json!({"url": "https://example.com/hook", "description": "D", "formIds": forms});
    let (of_all, _) = owner.webhook(json!({"url": "https://example.com/secret", "description": "D"})).await;
    let (of_both, _) = owner.webhook(linked(json!([form, other]))).await;
    let (own, _) = owner.webhook(linked(json!([form]))).await;
    let body = json!({"label": "k", "resourceIds": {"forms": [form]}});
    let (_, key) = owner.call(Method::POST, "/api/keys", body).await;
    let send =
        async |method, path: &str| owner.api.send(method, path, key["key"].as_str(), &Value::Null).await;
    let (_, listed) = send(Method::GET, "/api/webhooks").await;
    let members = |webhook: &Value| {
        let members = webhook.as_object().unwrap().keys().filter(|name| *name != "_meta").cloned();
        members.collect::<BTreeSet<_>>()
    };
    let short = BTreeSet::from(["id", "description"].map(str::to_owned));
    let listed = listed["webhooks"].as_array().unwrap().clone();
    assert_eq!(listed.len(), 3);
    for (webhook, path) in listed.iter().zip([&of_all, &of_both, &own]) {
        let (status, read) = send(Method::GET, path).await;
        assert_eq!(status, StatusCode::OK, "{read}");
        let is_own = *path == own;
        for seen in [webhook, &read] {
            assert_eq!(seen["description"], "D");
            assert_eq!(members(seen) == short, !is_own, "{seen}");
            assert_eq!(seen.to_string().contains("https://"), is_own, "{seen}");
        }
        let expected = if is_own { StatusCode::OK } else { StatusCode::FORBIDDEN };
        assert_eq!(send(Method::POST, &format!("{path}/test")).await.0, expected);
        assert_eq!(send(Method::GET, &format!("{path}/deliveries")).await.0, expected);
    }
}

#[tokio::test]
async fn a_key_restricted_to_forms_can_not_change_webhooks_of_others() {
    let owner = Owner::new(&[]).await;
    let (form, other) = (owner.form(&[]).await, owner.form(&[]).await);
    let linked = |forms: Value| json!({"url": "https://example.com/hook", "formIds": forms});
    let (of_all, _) = owner.webhook(hook()).await;
    let (of_both, _) = owner.webhook(linked(json!([form, other]))).await;
    let (of_form, _) = owner.webhook(linked(json!([form]))).await;
    let body = json!({"label": "k", "resourceIds": {"forms": [form]}});
    let (_, restricted) = owner.call(Method::POST, "/api/keys", body).await;
    let other_url = json!({"url": "https://elsewhere.example"});
    for (path, status) in
        [(of_all, StatusCode::FORBIDDEN), (of_both, StatusCode::FORBIDDEN), (of_form, StatusCode::OK)]
    {
        let calls = [
            (Method::PATCH, path.clone(), &other_url),
            (Method::POST, format!("{path}/rotate-secret"), &Value::Null),
            (Method::DELETE, path.clone(), &Value::Null),
        ];
        for (method, call, body) in calls {
            let (answered, received) = owner.api.send(method, &call, restricted["key"].as_str(), body).await;
            assert_eq!(answered, status, "{call}: {received}");
        }
        let remaining = owner.call(Method::GET, &path, Value::Null).await;
        let expected = if status == StatusCode::OK { StatusCode::NOT_FOUND } else { StatusCode::OK };
        assert_eq!(remaining.0, expected);
        assert_ne!(remaining.1["url"], "https://elsewhere.example");
    }
}
