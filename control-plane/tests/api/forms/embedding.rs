//! Responses about a form say how to show it in a page.

use http::{Method, StatusCode};
use serde_json::json;

use crate::harness::Api;

#[tokio::test]
async fn a_form_names_the_code_that_embeds_it() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let fields = json!([{"name": "email", "label": "E-mail", "type": "email"}]);
    let body = json!({"name": "Contact", "fields": fields});
    let (status, created) = api.send(Method::POST, "/api/forms", Some(&key), &body).await;
    assert_eq!(status, StatusCode::CREATED, "{created}");
    let id = created["formId"].as_str().unwrap();
    let code = format!(r#"<script src="http://localhost:8080/embed.js" data-form="{id}"></script>"#);
    assert_eq!(created["embedCode"], json!(code));
    let (_, read) = api.send(Method::GET, &format!("/api/forms/{id}"), Some(&key), &json!(null)).await;
    assert_eq!(read["embedCode"], json!(code));

    // The suggested page works as it is.
    let next = created["_next"].as_array().unwrap().iter().find(|next| next["intent"] == "embed").unwrap();
    assert_eq!(next["tool"], "pages.create");
    let (status, page) = api.send(Method::POST, "/api/pages", Some(&key), &next["params"]).await;
    assert_eq!(status, StatusCode::CREATED, "{page}");
}
