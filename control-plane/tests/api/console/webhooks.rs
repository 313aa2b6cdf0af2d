//! Webhooks and their deliveries on their pages.

use http::{Method, StatusCode};
use serde_json::Value;

use super::forms::contact_form;
use super::visitor::Visitor;
use crate::harness::Api;

#[tokio::test]
async fn a_webhook_is_made_for_chosen_forms_or_for_all() {
    let api = Api::start(&[]).await;
    let ada = Visitor::sign_in(&api).await;
    let form = contact_form(&api, &ada.key).await;
    let account = ada.account_id.to_string();
    let make = async |url: &str, fields: &[(&str, &str)]| {
        let all =
            [&[("account", account.as_str()), ("url", url), ("description", ""), ("formIds[]", "")], fields]
                .concat();
        ada.post("/console/webhooks", &all).await
    };
    let made = make("https://crm.example/one", &[("formIds[]", &form)]).await;
    assert_eq!(made.status, StatusCode::OK, "{}", made.html);
    made.contains("whsec_").contains("1 form");
    let all = make("https://crm.example/all", &[("hears", "all")]).await;
    all.contains("All forms");
    assert!(!ada.get("/console/webhooks").await.html.contains("whsec_"), "the secret is shown once");

    let refused = make("nonsense", &[("hears", "all")]).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    refused.contains("href=\"#field-url\"").contains("value=\"nonsense\"").contains("value=\"all\" checked");
    let (_, list) = api.send(Method::GET, "/api/webhooks", Some(&ada.key), &Value::Null).await;
    assert_eq!(list["webhooks"].as_array().unwrap().len(), 2, "{list}");
}

#[tokio::test]
async fn a_webhook_shows_its_deliveries_and_sends_a_test() {
    let api = Api::start(&[]).await;
    let ada = Visitor::sign_in(&api).await;
    let form = contact_form(&api, &ada.key).await;
    let body = serde_json::json!({ "url": "https://crm.example/hook", "formIds": [form] });
    let (_, hook) = api.send(Method::POST, "/api/webhooks", Some(&ada.key), &body).await;
    let path = format!("/console/webhooks/{}", hook["id"].as_str().unwrap());
    let account = ada.account_id.to_string();
    ada.get(&path).await.contains("Nothing was sent yet").contains("https://crm.example/hook");
    let tested = ada.post(&format!("{path}/test"), &[("account", &account)]).await;
    assert_eq!(tested.status, StatusCode::OK, "{}", tested.html);
    tested.contains("role=\"status\"");
    ada.get(&path).await.contains("Waiting");
    let unknown = ada.post(&format!("{path}/deliveries/{form}/retry"), &[("account", &account)]).await;
    assert_eq!(unknown.status, StatusCode::NOT_FOUND);
    unknown.contains("role=\"alert\"");
    let retried = ada.post(&format!("{path}/retry"), &[("account", &account), ("since", "yesterday")]).await;
    assert_eq!(retried.status, StatusCode::BAD_REQUEST);
}
