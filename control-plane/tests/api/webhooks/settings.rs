//! Webhooks: their settings, the forms that they cover, and their secrets.

use domain::plans::Plan;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::harness::Api;

/// An account with webhooks.
pub(crate) struct Owner {
    pub(crate) api: Api,
    pub(crate) key: String,
    pub(crate) account_id: Uuid,
}

impl Owner {
    pub(crate) async fn new(set: &[&str]) -> Self {
        let api = Api::start(set).await;
        let (key, account_id) = api.trial_on(Plan::Scale).await;
        Self { api, key, account_id }
    }

    pub(crate) async fn call(&self, method: Method, path: &str, body: Value) -> (StatusCode, Value) {
        self.api.send(method, path, Some(&self.key), &body).await
    }

    /// Returns the body of a successful call.
    pub(crate) async fn get(&self, path: &str) -> Value {
        let (status, response) = self.call(Method::GET, path, Value::Null).await;
        assert_eq!(status, StatusCode::OK, "{path}: {response}");
        response
    }

    /// Creates a webhook and returns its API path and the response.
    pub(crate) async fn webhook(&self, body: Value) -> (String, Value) {
        let (status, created) = self.call(Method::POST, "/api/webhooks", body).await;
        assert_eq!(status, StatusCode::CREATED, "{created}");
        (format!("/api/webhooks/{}", created["id"].as_str().unwrap()), created)
    }

    pub(crate) async fn form(&self, webhook_ids: &[&Value]) -> String {
        let fields = json!([{"name": "a", "label": "A", "type": "text"}]);
        let form = json!({"name": "F", "fields": fields, "webhookIds": webhook_ids});
        let (status, created) = self.call(Method::POST, "/api/forms", form).await;
        assert_eq!(status, StatusCode::CREATED, "{created}");
        created["formId"].as_str().unwrap().to_owned()
    }

    /// Returns the field and the rule of a rejected update.
    pub(crate) async fn rejected(&self, path: &str, body: Value) -> (String, String) {
        let method = if path == "/api/webhooks" { Method::POST } else { Method::PATCH };
        let (status, problem) = self.call(method, path, body).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{problem}");
        let error = &problem["fieldErrors"][0];
        (error["field"].as_str().unwrap().to_owned(), error["code"].as_str().unwrap().to_owned())
    }
}

pub(crate) fn hook() -> Value {
    json!({"url": "https://example.com/hook"})
}

#[tokio::test]
async fn webhook_settings_update_independently_and_null_removes_optional_ones() {
    let owner = Owner::new(&[]).await;
    let settings = json!({
        "url": "https://example.com/hook",
        "events": ["submission.created"],
        "description": "D",
        "fieldMapping": {"a": "b"},
        "template": "telegram",
        "telegramChatId": "-1001234567890",
    });
    let (path, created) = owner.webhook(settings.clone()).await;
    let members = ["url", "events", "description", "fieldMapping", "template", "telegramChatId"];
    for member in members {
        assert_eq!(created[member], settings[member], "{member}");
    }
    let edits = [
        json!({"url": "https://example.org/other"}),
        json!({"events": ["*"]}),
        json!({"description": null}),
        json!({"fieldMapping": {"c": "d"}}),
        json!({"fieldMapping": null}),
        json!({"telegramChatId": "@my_channel"}),
        json!({"template": "slack"}),
        json!({"telegramChatId": null}),
        json!({"events": []}),
        json!({}),
    ];
    let mut expected = settings;
    for edit in edits {
        let (status, edited) = owner.call(Method::PATCH, &path, edit.clone()).await;
        assert_eq!(status, StatusCode::OK, "{edited}");
        for (member, value) in edit.as_object().unwrap() {
            expected[member] = value.clone();
        }
        let read = owner.get(&path).await;
        for member in members {
            assert_eq!(
                (&edited[member], &read[member]),
                (&expected[member], &expected[member]),
                "{edit} {member}"
            );
        }
        assert!(edited["secret"].is_null(), "the secret is shown once");
    }
}

#[tokio::test]
async fn a_telegram_webhook_requires_a_chat() {
    let owner = Owner::new(&[]).await;
    let required = ("telegramChatId".to_owned(), "required".to_owned());
    let with = |members: Value| {
        let mut settings = hook();
        settings.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        settings
    };
    assert_eq!(owner.rejected("/api/webhooks", with(json!({"template": "telegram"}))).await, required);
    let (path, _) = owner.webhook(hook()).await;
    assert_eq!(owner.rejected(&path, json!({"template": "telegram"})).await, required);
    let both = json!({"template": "telegram", "telegramChatId": "42"});
    assert_eq!(owner.call(Method::PATCH, &path, both).await.0, StatusCode::OK);
    assert_eq!(owner.rejected(&path, json!({"telegramChatId": null})).await, required);
    let wrong = ("telegramChatId".to_owned(), "chat_id".to_owned());
    assert_eq!(owner.rejected(&path, json!({"telegramChatId": "my chat"})).await, wrong);
}

#[tokio::test]
async fn retired_connector_urls_are_rejected_with_a_hint() {
    let owner = Owner::new(&[]).await;
    let (path, _) = owner.webhook(hook()).await;
    let retired = json!({"url": "https://acme.webhook.office.com/webhookb2/x", "template": "teams"});
    for place in ["/api/webhooks", &path] {
        assert_eq!(owner.rejected(place, retired.clone()).await, ("url".to_owned(), "retired".to_owned()));
        let named = json!({"url": "https://me:secret@example.com/"});
        assert_eq!(owner.rejected(place, named).await, ("url".to_owned(), "credentials".to_owned()));
    }
    let (_, problem) = owner.call(Method::POST, "/api/webhooks", retired).await;
    assert!(problem["detail"].as_str().unwrap().contains("workflow"), "{problem}");
}

#[tokio::test]
async fn urls_that_the_guard_always_blocks_are_rejected_immediately() {
    let owner = Owner::new(&[]).await;
    let (path, _) = owner.webhook(hook()).await;
    let inside = [
        "http://example.com/hook",
        "https://127.0.0.1/hook",
        "https://0x7f.1/hook",
        "https://10.0.0.1:8443/",
        "https://[::1]/",
        "https://[::ffff:10.0.0.1]/",
        "https://169.254.169.254/latest/meta-data",
        "https://localhost/",
    ];
    for url in inside {
        for place in ["/api/webhooks", &path] {
            let rejected = owner.rejected(place, json!({"url": url})).await;
            assert_eq!(rejected, ("url".to_owned(), "refused".to_owned()), "{url}");
        }
    }
    let allowing = Owner::new(&["outbound.allow=[\"127.0.0.0/8\", \"hooks.internal\"]"]).await;
    for url in ["http://127.0.0.1:3000/", "http://hooks.internal/"] {
        allowing.webhook(json!({"url": url})).await;
    }
    assert_eq!(allowing.rejected("/api/webhooks", json!({"url": "https://10.0.0.1/"})).await.1, "refused");
}

#[tokio::test]
async fn deleting_a_webhook_deletes_its_deliveries_and_frees_quota() {
    let owner = Owner::new(&[]).await;
    owner.api.set_plan(owner.account_id, Plan::Free).await;
    let (path, _) = owner.webhook(hook()).await;
    assert_eq!(owner.call(Method::POST, &format!("{path}/test"), Value::Null).await.0, StatusCode::OK);
    assert_eq!(owner.call(Method::POST, "/api/webhooks", hook()).await.0, StatusCode::FORBIDDEN);
    let (status, deleted) = owner.call(Method::DELETE, &path, Value::Null).await;
    assert_eq!((status, &deleted["deleted"]), (StatusCode::OK, &json!(true)));
    for method in [Method::GET, Method::PATCH, Method::DELETE] {
        let body = if method == Method::PATCH { json!({}) } else { Value::Null };
        assert_eq!(owner.call(method, &path, body).await.0, StatusCode::NOT_FOUND);
    }
    let no_deliveries = "do $$ begin if exists (select from deliveries) then raise 'left'; end if; end $$";
    owner.api.execute(no_deliveries).await.unwrap();
    owner.webhook(hook()).await;
}

#[tokio::test]
async fn a_webhook_covers_all_forms_only_until_its_first_link() {
    let owner = Owner::new(&[]).await;
    let (path, created) = owner.webhook(hook()).await;
    assert_eq!((&created["allForms"], &created["formIds"]), (&json!(true), &json!([])));
    let form = owner.form(&[&created["id"]]).await;
    let linked = owner.get(&path).await;
    assert_eq!((&linked["allForms"], &linked["formIds"]), (&json!(false), &json!([form])));
    let form_path = format!("/api/forms/{form}");
    assert_eq!(owner.call(Method::DELETE, &form_path, Value::Null).await.0, StatusCode::OK);
    let unlinked = owner.get(&path).await;
    assert_eq!((&unlinked["allForms"], &unlinked["formIds"]), (&json!(false), &json!([])));

    let form = owner.form(&[]).await;
    let (path, created) = owner.webhook(json!({"url": "https://example.com/hook", "formIds": [form]})).await;
    assert_eq!((&created["allForms"], &created["formIds"]), (&json!(false), &json!([form])));
    let form_path = format!("/api/forms/{form}");
    assert_eq!(owner.call(Method::DELETE, &form_path, Value::Null).await.0, StatusCode::OK);
    assert_eq!(owner.get(&path).await["allForms"], false);

    let (_, created) = owner.webhook(json!({"url": "https://example.com/hook", "formIds": []})).await;
    assert_eq!(created["allForms"], false, "an empty list does not mean all forms");
}

#[tokio::test]
async fn an_automatically_deactivated_webhook_shows_the_reason_until_reactivated() {
    let owner = Owner::new(&[]).await;
    let (path, created) = owner.webhook(hook()).await;
    assert_eq!((&created["isActive"], &created["deactivatedReason"]), (&json!(true), &json!(null)));
    let off = "update webhooks set is_active = false, failing_since = now() - interval '5 days',
                   deactivated_reason = 'failing', deactivated_at = now()";
    owner.api.execute(off).await.unwrap();
    let read = owner.get(&path).await;
    assert_eq!((&read["isActive"], &read["deactivatedReason"]), (&json!(false), &json!("failing")));
    assert!(read["deactivatedAt"].is_string() && read["failingSince"].is_string(), "{read}");
    owner.call(Method::PATCH, &path, json!({"description": "x"})).await;
    assert_eq!(owner.get(&path).await["deactivatedReason"], "failing");
    let (_, on) = owner.call(Method::PATCH, &path, json!({"isActive": true})).await;
    for member in ["deactivatedReason", "deactivatedAt", "failingSince"] {
        assert!(on[member].is_null(), "{on}");
    }
    assert_eq!(on["isActive"], true);
}

#[tokio::test]
async fn a_rotated_secret_is_shown_once_and_the_old_one_signs_until_its_ttl() {
    let owner = Owner::new(&[]).await;
    let (path, created) = owner.webhook(hook()).await;
    assert!(created["previousSecretUntil"].is_null());
    let rotate = format!("{path}/rotate-secret");
    let hours_left = |response: &Value| {
        let until: chrono::DateTime<chrono::Utc> =
            response["previousSecretUntil"].as_str().unwrap().parse().unwrap();
        (until - service::Clock::system().now()).num_minutes() / 60
    };
    let (status, rotated) = owner.call(Method::POST, &rotate, Value::Null).await;
    assert_eq!(status, StatusCode::OK, "{rotated}");
    assert!(rotated["secret"].as_str().unwrap().starts_with("whsec_"));
    assert_ne!(rotated["secret"], created["secret"]);
    assert_eq!(hours_left(&rotated), 23);
    assert_eq!(owner.get(&path).await["previousSecretUntil"], rotated["previousSecretUntil"]);
    assert!(owner.get(&path).await["secret"].is_null());

    let (_, week) = owner.call(Method::POST, &rotate, json!({"keepPreviousForSeconds": 604_800.0})).await;
    assert_eq!(hours_left(&week), 167);
    let (_, leaked) = owner.call(Method::POST, &rotate, json!({"keepPreviousForSeconds": 0})).await;
    assert!(leaked["previousSecretUntil"].is_null());
    for wrong in [-1, 604_801] {
        let (status, problem) =
            owner.call(Method::POST, &rotate, json!({"keepPreviousForSeconds": wrong})).await;
        assert_eq!(
            (status, &problem["fieldErrors"][0]["field"]),
            (StatusCode::BAD_REQUEST, &json!("keepPreviousForSeconds"))
        );
    }
}

#[tokio::test]
async fn webhook_urls_and_secrets_are_stored_encrypted() {
    let owner = Owner::new(&[]).await;
    let (path, created) =
        owner.webhook(json!({"url": "https://hooks.slack.com/services/T/B/very-secret"})).await;
    let (_, rotated) = owner.call(Method::POST, &format!("{path}/rotate-secret"), Value::Null).await;
    let secrets =
        [&created["secret"], &rotated["secret"]].map(|secret| secret.as_str().unwrap()[6..].to_owned());
    for text in ["very-secret", "hooks.slack.com", &secrets[0], &secrets[1]] {
        let absent = format!(
            "do $$ begin if exists (select from webhooks w where position('{text}' in
                 encode(sealed_url, 'escape') || encode(sealed_secret, 'escape')
                 || encode(sealed_previous_secret, 'escape') || w::text) > 0)
             then raise exception 'found'; end if; end $$"
        );
        owner.api.execute(&absent).await.unwrap();
    }
}

#[tokio::test]
async fn a_mapping_onto_the_name_of_another_field_is_rejected_with_both_names() {
    let owner = Owner::new(&[]).await;
    let field = |name: &str| json!({"name": name, "label": "L", "type": "text"});
    let form = json!({"name": "Guests", "fields": [field("mail"), field("contact"), field("b")]});
    let (_, created) = owner.call(Method::POST, "/api/forms", form).await;
    let form = created["formId"].clone();
    let with_mapping = |mapping: Value| json!({"url": "https://example.com/hook", "formIds": [form], "fieldMapping": mapping});
    let taken = |name: &str| (format!("fieldMapping.{name}"), "name_taken".to_owned());
    assert_eq!(
        owner.rejected("/api/webhooks", with_mapping(json!({"mail": "contact"}))).await,
        taken("mail")
    );
    assert_eq!(
        owner.rejected("/api/webhooks", with_mapping(json!({"b": "x", "mail": "x"}))).await,
        taken("mail")
    );
    let for_all = json!({"url": "https://example.com/hook", "fieldMapping": {"mail": "contact"}});
    let (_, problem) = owner.call(Method::POST, "/api/webhooks", for_all).await;
    let message = problem["fieldErrors"][0]["message"].as_str().unwrap();
    assert!(["Guests", "`mail`", "`contact`"].iter().all(|part| message.contains(part)), "{message}");

    // Two fields may swap their names, and names of fields that the form does not have are free.
    let swap = json!({"mail": "contact", "contact": "mail", "none": "b"});
    let (path, _) = owner.webhook(with_mapping(swap)).await;
    assert_eq!(owner.rejected(&path, json!({"fieldMapping": {"b": "mail"}})).await, taken("b"));
    assert_eq!(owner.get(&path).await["fieldMapping"]["none"], "b", "unchanged");
    let (status, _) = owner.call(Method::PATCH, &path, json!({"fieldMapping": {"mail": "phone"}})).await;
    assert_eq!(status, StatusCode::OK);

    // A form can't get such a field later either, nor such a webhook.
    let form_path = format!("/api/forms/{}", form.as_str().unwrap());
    let edit = async |body: Value| owner.call(Method::PUT, &form_path, body).await;
    let (status, problem) = edit(json!({"fields": [field("mail"), field("phone")]})).await;
    assert_eq!((status, &problem["fieldErrors"][0]["field"]), (StatusCode::BAD_REQUEST, &json!("fields")));
    assert!(problem["detail"].as_str().unwrap().contains("`mail` and `phone`"), "{problem}");
    assert_eq!(edit(json!({"fields": [field("mail"), field("b")]})).await.0, StatusCode::OK);
    let id = path.rsplit('/').next().unwrap();
    let other = json!({"name": "Other", "fields": [field("phone"), field("mail")], "webhookIds": [id]});
    let (status, problem) = owner.call(Method::POST, "/api/forms", other).await;
    assert_eq!(
        (status, &problem["fieldErrors"][0]["field"]),
        (StatusCode::BAD_REQUEST, &json!("webhookIds"))
    );
    // A webhook for all forms, which may belong to another key, is in no new form's way.
    owner.webhook(json!({"url": "https://example.com/all", "fieldMapping": {"mail": "cell"}})).await;
    let new = json!({"name": "New", "fields": [field("cell"), field("mail")]});
    let (status, created) = owner.call(Method::POST, "/api/forms", new).await;
    assert_eq!(status, StatusCode::CREATED, "{created}");
}

#[tokio::test]
async fn a_webhook_is_limited_to_other_forms_and_widened_to_all() {
    let owner = Owner::new(&[]).await;
    let (one, other) = (owner.form(&[]).await, owner.form(&[]).await);
    let (path, _) = owner.webhook(hook()).await;
    let reach = async |form_ids: Value| {
        let (status, edited) = owner.call(Method::PATCH, &path, json!({"formIds": form_ids})).await;
        assert_eq!(status, StatusCode::OK, "{edited}");
        let read = owner.get(&path).await;
        assert_eq!((&edited["allForms"], &edited["formIds"]), (&read["allForms"], &read["formIds"]));
        (read["allForms"].clone(), read["formIds"].clone())
    };
    assert_eq!(reach(json!([one])).await, (json!(false), json!([one])));
    assert_eq!(reach(json!([other])).await, (json!(false), json!([other])));
    assert_eq!(reach(json!([])).await, (json!(false), json!([])));
    assert_eq!(reach(Value::Null).await, (json!(true), json!([])));
    let (_, kept) = owner.call(Method::PATCH, &path, json!({"description": "D"})).await;
    assert_eq!(kept["allForms"], true, "left out stays");

    let (strangers, _) = owner.api.trial_on(Plan::Scale).await;
    let body = json!({"name": "F", "fields": [{"name": "a", "label": "A", "type": "text"}]});
    let (_, foreign) = owner.api.send(Method::POST, "/api/forms", Some(&strangers), &body).await;
    let (status, problem) = owner.call(Method::PATCH, &path, json!({"formIds": [foreign["formId"]]})).await;
    assert_eq!(status, StatusCode::NOT_FOUND, "{problem}");
    let (_, key) =
        owner.call(Method::POST, "/api/keys", json!({"label": "k", "resourceIds": {"forms": [one]}})).await;
    let restricted = key["key"].as_str();
    reach(json!([one])).await;
    for widened in [Value::Null, json!([one, other])] {
        let (status, problem) =
            owner.api.send(Method::PATCH, &path, restricted, &json!({"formIds": widened})).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{problem}");
    }
}
