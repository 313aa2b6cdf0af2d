//! Suggestions are made for the account, its plan and the key.

use std::collections::{BTreeMap, BTreeSet};

use domain::plans::Plan;
use domain::restrictions::Restrictions;
use domain::scopes::{Resource, ScopeSet};
use http::{Method, StatusCode};
use serde_json::{Value, json};
use uuid::Uuid;

use super::tools::{Tools, tool_names};
use crate::harness::Api;

async fn create(api: &Api, key: &str, path: &str, body: Value) -> Value {
    let (status, response) = api.send(Method::POST, path, Some(key), &body).await;
    assert_eq!(status, StatusCode::CREATED, "{path}: {response}");
    response
}

fn form(name: &str) -> Value {
    json!({"name": name, "fields": [{"name": "email", "label": "E-mail", "type": "email", "required": true}]})
}

fn page(slug: &str) -> Value {
    json!({"slug": slug, "title": "T", "html": "x"})
}

fn id(response: &Value, name: &str) -> Uuid {
    response[name].as_str().unwrap().parse().unwrap()
}

#[tokio::test]
async fn an_account_with_a_form_is_not_asked_for_one() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let first = create(&api, &key, "/api/pages", page("one")).await;
    assert_eq!(tool_names(&first)[0], "forms.create", "{first}");
    create(&api, &key, "/api/forms", form("F")).await;
    let second = create(&api, &key, "/api/pages", page("two")).await;
    assert!(!tool_names(&second).contains(&"forms.create".to_owned()), "{second}");
    let (_, status) = api.send(Method::GET, "/api/status", Some(&key), &Value::Null).await;
    assert!(!tool_names(&status).contains(&"forms.create".to_owned()), "{status}");
}

#[tokio::test]
async fn a_form_beside_an_all_forms_webhook_needs_none() {
    let api = Api::start(&[]).await;
    for plan in [Plan::Free, Plan::Scale] {
        let (key, _) = api.trial_on(plan).await;
        create(&api, &key, "/api/webhooks", json!({"url": "https://example.com/hook"})).await;
        let form = create(&api, &key, "/api/forms", form("F")).await;
        let names = tool_names(&form);
        assert!(!names.contains(&"webhooks.create".to_owned()), "{form}");
        assert!(!names.contains(&"forms.update".to_owned()), "{form}");
        assert_eq!(names[0], "submissions.submit", "{form}");
        assert_eq!(form["_next"][0]["params"], json!({"id": form["formId"], "email": "ada@example.com"}));
    }
}

#[tokio::test]
async fn the_used_up_webhook_is_linked_to_the_next_form() {
    let (tools, api) = (Tools::read(), Api::start(&[]).await);
    let key = api.trial().await;
    create(&api, &key, "/api/pages", page("index")).await;
    let first = create(&api, &key, "/api/forms", form("F")).await;
    let webhook = json!({"url": "https://example.com/hook", "formIds": [first["formId"]]});
    let webhook = create(&api, &key, "/api/webhooks", webhook).await;
    let second = create(&api, &key, "/api/forms", form("G")).await;
    assert!(!tool_names(&second).contains(&"webhooks.create".to_owned()), "{second}");
    let suggestion = &second["_next"][0];
    assert_eq!(suggestion["tool"], "forms.update", "{second}");
    assert_eq!(suggestion["params"], json!({"id": second["formId"], "webhookIds": [webhook["id"]]}));
    let (status, linked) = tools.call(&api, &key, suggestion).await;
    assert_eq!((status, &linked["webhookIds"]), (StatusCode::OK, &json!([webhook["id"]])), "{linked}");
    let third = create(&api, &key, "/api/pages", page("more")).await;
    assert!(!tool_names(&third).contains(&"forms.update".to_owned()), "{third}");
}

/// A link would take a webhook from all other forms, or send it what its mapping or its events don't fit.
#[tokio::test]
async fn no_webhook_is_linked_that_would_lose_something() {
    let api = Api::start(&[]).await;
    for (number, webhook) in [
        json!({"events": ["form.closed"]}),
        json!({"events": ["submission.updated"], "formIds": ["@"]}),
        json!({"formIds": ["@"], "fieldMapping": {"email": "address"}}),
    ]
    .into_iter()
    .enumerate()
    {
        let (key, _) = api.trial_on(Plan::Scale).await;
        let first = create(&api, &key, "/api/forms", form("F")).await;
        let mut webhook = webhook;
        webhook["url"] = json!("https://example.com/hook");
        if webhook["formIds"].is_array() {
            webhook["formIds"] = json!([first["formId"]]);
        }
        create(&api, &key, "/api/webhooks", webhook).await;
        let second = create(&api, &key, "/api/forms", form("G")).await;
        let names = tool_names(&second);
        assert!(!names.contains(&"forms.update".to_owned()), "{number}: {second}");
        assert!(names.contains(&"webhooks.create".to_owned()), "{number}: {second}");
    }
}

#[tokio::test]
async fn a_form_keeps_the_webhook_that_it_is_linked_to() {
    let api = Api::start(&[]).await;
    let (key, _) = api.trial_on(Plan::Scale).await;
    let other = create(&api, &key, "/api/forms", form("F")).await;
    let linked = create(&api, &key, "/api/forms", form("G")).await;
    let [changes, news] = [(&linked, "submission.updated"), (&other, "submission.created")].map(|(form, event)| {
        json!({"url": "https://example.com/hook", "events": [event], "formIds": [form["formId"]]})
    });
    create(&api, &key, "/api/webhooks", changes).await;
    create(&api, &key, "/api/webhooks", news).await;
    let (_, status) = api.send(Method::GET, "/api/status", Some(&key), &Value::Null).await;
    assert!(!tool_names(&status).contains(&"forms.update".to_owned()), "{status}");
}

/// Four pages of pictures need four slugs.
#[tokio::test]
async fn each_suggested_slug_is_free() {
    let (tools, api) = (Tools::read(), Api::start(&[]).await);
    let key = api.trial().await;
    for number in 0..4 {
        let asset = json!({"filename": format!("{number}.png"), "contentType": "image/png", "sizeBytes": 1});
        let response = create(&api, &key, "/api/pages/assets", asset).await;
        assert_eq!(response["_next"][0]["tool"], "pages.create", "{response}");
        let (status, page) = tools.call(&api, &key, &response["_next"][0]).await;
        assert_eq!(status, StatusCode::CREATED, "{page}");
    }
}

/// Every suggestion of these keys can be called by them: none lacks a scope, none lies outside their restrictions.
#[tokio::test]
async fn narrow_keys_can_do_what_they_are_told() {
    let (tools, api) = (Tools::read(), Api::start(&[]).await);
    let (key, account_id) = api.trial_on(Plan::Scale).await;
    let folder = create(&api, &key, "/api/folders", json!({"name": "Folder"})).await;
    create(&api, &key, "/api/pages", page("outside")).await;
    let outside = create(&api, &key, "/api/forms", form("Outside")).await;
    create(
        &api,
        &key,
        "/api/webhooks",
        json!({"url": "https://example.com/1", "formIds": [outside["formId"]]}),
    )
    .await;
    let ids = |kinds: &[(Resource, Uuid)]| -> BTreeMap<Resource, BTreeSet<Uuid>> {
        kinds.iter().map(|(kind, id)| (*kind, BTreeSet::from([*id]))).collect()
    };
    let in_folder = Restrictions { folder_id: Some(id(&folder, "id")), ids: BTreeMap::new() };
    let on_form = Restrictions { folder_id: None, ids: ids(&[(Resource::Forms, id(&outside, "formId"))]) };
    let scopes = |words: &[&str]| ScopeSet::parse(words.iter().copied()).unwrap();
    let keys = [
        (ScopeSet::FULL, in_folder),
        (ScopeSet::FULL, on_form),
        (scopes(&["pages:create", "account:*"]), Restrictions::default()),
        (scopes(&["forms:*", "account:read", "pages:*"]), Restrictions::default()),
        (scopes(&["*:read", "pages:create"]), Restrictions::default()),
    ];
    for (number, (scopes, restrictions)) in keys.into_iter().enumerate() {
        let shown = format!("{scopes:?} {restrictions:?}");
        let (_, narrow) = api.insert_child(account_id, scopes, restrictions, None).await;
        let mut response = create(&api, &narrow, "/api/pages", page(&format!("page-{number}"))).await;
        let mut followed = 0;
        for _ in 0..6 {
            let mut is_first = true;
            for suggestion in &response["_next"].as_array().cloned().unwrap_or_default() {
                // The edge serves the submission.
                followed += 1;
                if suggestion["tool"] == "submissions.submit" {
                    continue;
                }
                let (status, refused) = tools.call(&api, &narrow, suggestion).await;
                // A suggestion may have done already what a later one of the same answer asks for; and no ClickHouse runs.
                let is_done = !is_first && status == StatusCode::CONFLICT;
                let is_unanswered =
                    suggestion["tool"] == "analytics.query" && status == StatusCode::SERVICE_UNAVAILABLE;
                assert!(
                    status.is_success() || is_done || is_unanswered,
                    "{shown} {suggestion}: {status} {refused}"
                );
                (response, is_first) = (refused, false);
            }
            if response["_next"].is_null() {
                break;
            }
        }
        assert!(followed > 0, "{number} {shown} {response}");
    }
}

#[tokio::test]
async fn a_key_that_may_do_nothing_else_gets_no_suggestions() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let page = create(&api, &key, "/api/pages", page("index")).await;
    assert!(page["_next"].is_array());
    let scopes = ScopeSet::parse(["folders:create"]).unwrap();
    let narrow = api.key_with(&key, scopes).await;
    let folder = create(&api, &narrow, "/api/folders", json!({"name": "F"})).await;
    assert!(folder["_next"].is_null(), "{folder}");
}

#[tokio::test]
async fn a_page_that_is_not_live_is_to_be_published() {
    let (tools, api) = (Tools::read(), Api::start(&[]).await);
    let key = api.trial().await;
    let mut draft = page("draft");
    draft["isPublished"] = json!(false);
    let draft = create(&api, &key, "/api/pages", draft).await;
    assert_eq!(draft["_next"][0]["params"], json!({"id": draft["id"], "isPublished": true}), "{draft}");
    let (status, live) = tools.call(&api, &key, &draft["_next"][0]).await;
    assert_eq!((status, &live["isPublished"]), (StatusCode::OK, &json!(true)), "{live}");
}

#[tokio::test]
async fn the_status_of_a_full_plan_suggests_no_creation() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let pages: Vec<Value> = (0..10).map(|number| page(&format!("page-{number}"))).collect();
    let (_, batch) = api.send(Method::POST, "/api/pages/batch", Some(&key), &json!({"pages": pages})).await;
    assert_eq!(batch["created"], 10, "{batch}");
    let names = tool_names(&batch);
    assert!(names.contains(&"account.plans".to_owned()), "{names:?}");
    for creation in ["pages.create", "forms.create", "analytics.create", "automations.create"] {
        assert!(!names.contains(&creation.to_owned()), "{names:?}");
    }
}
