//! A form's own page: how to share it, its state, its results, and its deletion.

use domain::plans::Plan;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::forms::contact_form;
use super::visitor::Visitor;
use crate::harness::Api;

async fn post(ada: &Visitor<'_>, form: &str, act: &str) -> super::visitor::PageResponse {
    let account = ada.account_id.to_string();
    ada.post(&format!("/console/forms/{form}/{act}"), &[("account", &account)]).await
}

#[tokio::test]
async fn a_form_is_shared_in_five_ways_closed_and_opened_again() {
    let api = Api::start(&[]).await;
    let ada = Visitor::sign_in(&api).await;
    let form = contact_form(&api, &ada.key).await;
    let path = format!("/console/forms/{form}/details");
    let page = ada.get(&path).await;
    page.contains(&format!("/f/{form}")).contains("data-mode=&quot;popup&quot;").contains("&lt;iframe src=");
    page.contains("&lt;form action=&quot;").contains("It takes submissions");
    // The name of the form is escaped in the snippet, and the snippet in the page.
    page.contains("title=&quot;Contact &amp;lt;b&amp;gt;us");
    assert!(!page.html.contains("<b>us"));

    let closed = post(&ada, &form, "close").await;
    assert_eq!(
        (closed.status, closed.header("location")),
        (StatusCode::SEE_OTHER, path.as_str()),
        "{}",
        closed.html
    );
    ada.get(&path).await.contains("It takes no submissions since").contains("Open it again");
    assert_eq!(post(&ada, &form, "open").await.status, StatusCode::SEE_OTHER);
    ada.get(&path).await.contains("Close it now");
}

#[tokio::test]
async fn results_are_bars_of_what_can_be_counted() {
    let api = Api::start(&[]).await;
    let ada = Visitor::sign_in(&api).await;
    let text = contact_form(&api, &ada.key).await;
    ada.get(&format!("/console/forms/{text}/details"))
        .await
        .contains("No question of this form can be counted");
    let body = json!({ "name": "Poll", "fields": [
        { "type": "select", "name": "vote", "label": "Vote <i>", "options": ["Tea", "<b>Coffee"] },
        { "type": "number", "name": "age", "label": "Age" }] });
    let (_, form) = api.send(Method::POST, "/api/forms", Some(&ada.key), &body).await;
    let form = form["formId"].as_str().unwrap().to_owned();
    let path = format!("/console/forms/{form}/details");
    ada.get(&path).await.contains("No answer yet.");
    for (at, vote) in ["Tea", "<b>Coffee", "<b>Coffee"].iter().enumerate() {
        let body = json!({ "externalId": format!("e{at}"), "payload": { "vote": vote, "age": 30 + at } });
        let upsert = format!("/api/forms/{form}/submissions/upsert");
        let (status, stored) = api.send(Method::PUT, &upsert, Some(&ada.key), &body).await;
        assert_eq!(status, StatusCode::CREATED, "{stored}");
    }
    let page = ada.get(&path).await;
    page.contains("&lt;b&gt;Coffee")
        .contains("width=\"100.0%\"")
        .contains("width=\"50.0%\"")
        .contains("mean 31");
    assert!(!page.html.contains("<b>Coffee") && !page.html.contains("Vote <i>"));
}

#[tokio::test]
async fn a_form_is_deleted_after_a_question_and_with_a_recent_sign_in_only() {
    let api = Api::start(&[]).await;
    let ada = Visitor::sign_in(&api).await;
    api.execute("update sessions set created_at = created_at - interval '1 day'").await.unwrap();
    let form = contact_form(&api, &ada.key).await;
    let path = format!("/console/forms/{form}/details");
    ada.get(&format!("{path}?confirm=delete")).await.contains("Nothing can be restored.");
    let refused = post(&ada, &form, "delete").await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN, "{}", refused.html);
    let back = format!("returnTo=%2Fconsole%2Fforms%2F{form}%2Fdetails%3Fconfirm%3Ddelete");
    refused.contains("Sign in again").contains(&back).contains("Nothing can be restored.");
    let read =
        async || api.send(Method::GET, &format!("/api/forms/{form}"), Some(&ada.key), &Value::Null).await.0;
    assert_eq!(read().await, StatusCode::OK);
    api.execute("update sessions set created_at = created_at + interval '1 day'").await.unwrap();
    // The caller's credentials are cached.
    api.set_plan(ada.account_id, Plan::Pro).await;
    let deleted = post(&ada, &form, "delete").await;
    assert_eq!((deleted.status, deleted.header("location")), (StatusCode::SEE_OTHER, "/console/forms"));
    assert_eq!(read().await, StatusCode::NOT_FOUND);
}
