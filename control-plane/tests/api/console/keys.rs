//! API keys on their page.

use http::StatusCode;

use super::visitor::Visitor;
use crate::harness::Api;

#[tokio::test]
async fn a_new_key_is_shown_once_and_revoked() {
    let api = Api::start(&["keys.cache_ttl=0s"]).await;
    let ada = Visitor::sign_in(&api).await;
    let page = ada.get("/console/keys").await;
    let (account, idempotency_key) = (page.hidden("account"), page.hidden("idempotency_key"));
    let form = [
        ("account", &*account),
        ("idempotency_key", &idempotency_key),
        ("label", "deploys"),
        ("may", "*:read"),
    ];
    let made = ada.post("/console/keys", &form).await;
    assert_eq!(made.status, StatusCode::OK, "{}", made.html);
    let secret =
        made.html.split_once("<output id=\"secret\">").unwrap().1.split('<').next().unwrap().to_owned();
    assert_eq!(api.account_of(&secret).await, ada.account_id);
    let again = ada.post("/console/keys", &form).await;
    again.contains(&secret);
    let list = ada.get("/console/keys").await;
    assert!(!list.html.contains(&secret));
    list.contains("deploys").contains("Read everything");
    assert_eq!(list.html.matches(">deploys<").count(), 1, "a second post of the page made no second key");

    let id = list.html.split("revoke=").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let confirm = ada.get(&format!("/console/keys?revoke={id}")).await;
    confirm.contains("Revoke it");
    let revoked = ada.post(&format!("/console/keys/{id}/revoke"), &[("account", &account)]).await;
    assert_eq!((revoked.status, revoked.header("location")), (StatusCode::SEE_OTHER, "/console/keys"));
    revoked.headers.get("set-cookie").unwrap().to_str().unwrap().starts_with("console-flash=key-revoked;");
}

#[tokio::test]
async fn a_refused_key_keeps_what_was_typed_and_says_why_at_the_field() {
    let api = Api::start(&[]).await;
    let ada = Visitor::sign_in(&api).await;
    let account = ada.account_id.to_string();
    let long = "\"long\u{202e}".repeat(30);
    let refused = ada.post("/console/keys", &[("account", &account), ("label", &long), ("may", "*")]).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    refused
        .contains("href=\"#field-label\"")
        .contains("id=\"error-label\"")
        .contains("aria-invalid=\"true\"");
    refused.contains(&format!("value=\"{}\"", long.replace('"', "&quot;")));
    refused.contains("value=\"*\" checked");
}
