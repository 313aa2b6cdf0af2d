//! A pipeline requires the scope of each of its parts, and stays within the key's restrictions.

use domain::plans::Plan;
use domain::restrictions::Restrictions;
use domain::scopes::{Resource, ScopeSet};
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::{folder_key, get, page, refused, with};
use crate::harness::Api;

const PATH: &str = "/api/pipeline";

fn form() -> Value {
    json!({"name": "F", "fields": [{"name": "a", "label": "A", "type": "text"}]})
}

fn notified() -> Value {
    with(form(), json!({"notify": {"slack": "https://hooks.slack.com/services/T0/B0/x"}}))
}

#[tokio::test]
async fn each_part_of_a_pipeline_requires_its_scope() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let template = with(page("guests"), json!({"entryTemplate": "{{a}}"}));
    let (_, guests) = api.send(Method::POST, "/api/pages", Some(&key), &template).await;
    let entered = with(form(), json!({"autoEntryPageId": guests["id"]}));
    let parts = [
        (vec!["forms:read"], form(), "forms:create"),
        (vec!["forms:create"], notified(), "webhooks:create"),
        (vec!["forms:create"], entered, "entries:create"),
    ];
    for (scopes, body, missing) in parts {
        let narrow = api.key_with(&key, ScopeSet::parse(scopes).unwrap()).await;
        let problem = refused(&api, &narrow, PATH, &body, (403, "insufficient_scope")).await;
        assert_eq!(problem["requiredScope"], missing, "{problem}");
    }
    let narrow = api.key_with(&key, ScopeSet::parse(["forms:create", "webhooks:create"]).unwrap()).await;
    let (status, created) = api.send(Method::POST, PATH, Some(&narrow), &notified()).await;
    assert_eq!(status, StatusCode::CREATED, "{created}");
}

#[tokio::test]
async fn a_key_of_a_folder_creates_pipelines_in_its_folder() {
    let api = Api::start(&[]).await;
    let (key, account_id) = api.trial_on(Plan::Scale).await;
    let (folder, restricted) = folder_key(&api, &key, account_id).await;
    let (status, created) = api.send(Method::POST, PATH, Some(&restricted), &notified()).await;
    assert_eq!(status, StatusCode::CREATED, "{created}");
    let form_path = format!("/api/forms/{}", created["formId"].as_str().unwrap());
    assert_eq!(get(&api, &restricted, &form_path).await["folderId"], folder);
    let webhook_path = format!("/api/webhooks/{}", created["webhooks"][0]["id"].as_str().unwrap());
    assert_eq!(get(&api, &restricted, &webhook_path).await["formIds"], json!([created["formId"]]));

    let template = with(page("outside"), json!({"entryTemplate": "{{a}}"}));
    let (_, outside) = api.send(Method::POST, "/api/pages", Some(&key), &template).await;
    let entered = with(form(), json!({"autoEntryPageId": outside["id"]}));
    refused(&api, &restricted, PATH, &entered, (403, "folder_forbidden")).await;
}

#[tokio::test]
async fn a_key_of_listed_forms_or_webhooks_creates_no_pipeline() {
    let api = Api::start(&[]).await;
    let (_, account_id) = api.trial_on(Plan::Scale).await;
    for (kind, body) in [(Resource::Forms, form()), (Resource::Webhooks, notified())] {
        let restrictions = Restrictions { ids: [(kind, [].into())].into(), ..Restrictions::default() };
        let (_, restricted) = api.insert_key(account_id, ScopeSet::FULL, restrictions, None).await;
        refused(&api, &restricted, PATH, &body, (403, "insufficient_scope")).await;
    }
}
