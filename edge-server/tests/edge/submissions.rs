//! Form submissions: stored fields, validation errors, limits and CORS.

use std::time::Duration;

use futures::future::join_all;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::fixtures::{now, one_text_field, submit_path};
use crate::harness::Edge;

#[tokio::test]
async fn only_declared_fields_are_stored() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let form =
        account.form_with(one_text_field(), |form| form.success_message = Some("Merci".to_owned())).await;
    let submitted = json!({"a": "x", "isAdmin": true, "__proto__": {"x": 1}, "nested": {"deep": [1, 2]}});
    let response = edge.visitor.post(&submit_path(form), &submitted).await;
    assert_eq!(response.status, StatusCode::CREATED);
    let body = response.json();
    assert_eq!(body["success"], true);
    assert_eq!((&body["message"], &body["redirectUrl"]), (&json!("Merci"), &Value::Null));
    assert!(body["submissionId"].as_str().unwrap().parse::<Uuid>().is_ok() && body["createdAt"].is_string());
    assert_eq!(account.submissions(form).await, [json!({"a": "x"})], "undeclared fields are dropped");
    assert_eq!(account.count(form).await, 1);
}

#[tokio::test]
async fn a_browser_gets_a_thank_you_page_or_a_redirect() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let form =
        account.form_with(one_text_field(), |form| form.success_message = Some("Merci".to_owned())).await;
    let sent = edge.visitor.post_form(&submit_path(form), &[("a", "x & y = ü")]).await;
    assert_eq!(
        (sent.status, sent.header("location")),
        (StatusCode::SEE_OTHER, &*format!("/f/{form}/thanks"))
    );
    let thanks = edge.visitor.get("localhost", sent.header("location")).await;
    assert_eq!((thanks.status, thanks.header("content-type")), (StatusCode::OK, "text/html; charset=utf-8"));
    assert!(thanks.text().contains("Merci"));
    assert_eq!(account.submissions(form).await, [json!({"a": "x & y = ü"})]);

    let url = "https://example.com/thanks?from=form#done";
    let form = account.form_with(one_text_field(), |form| form.redirect_url = Some(url.to_owned())).await;
    let sent_on = edge.visitor.post_form(&submit_path(form), &[("a", "x")]).await;
    assert_eq!((sent_on.status, sent_on.header("location")), (StatusCode::SEE_OTHER, url));
    let program = edge.visitor.post(&submit_path(form), &json!({"a": "x"})).await;
    assert_eq!((program.status, &program.json()["redirectUrl"]), (StatusCode::CREATED, &json!(url)));
}

#[tokio::test]
async fn validation_errors_are_json_for_programs_and_html_for_browsers() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let form = account
        .form(json!([
            {"name": "mail", "label": "Your e-mail", "type": "email", "required": true},
            {"name": "note", "label": "Note", "type": "textarea"},
        ]))
        .await;
    let program = edge.visitor.post(&submit_path(form), &json!({"mail": "nope", "note": 7})).await;
    let problem = program.problem(400, "validation_failed");
    let named: Vec<_> = problem["fieldErrors"].as_array().unwrap().iter().map(|one| &one["field"]).collect();
    assert_eq!(named, ["mail", "note"]);

    let browser =
        edge.visitor.post_form(&submit_path(form), &[("mail", "nope"), ("note", "kept text")]).await;
    assert_eq!(browser.status, StatusCode::BAD_REQUEST);
    let page = browser.text();
    assert!(
        page.contains("role=\"alert\"") && page.contains("href=\"#field-mail\""),
        "an error summary: {page}"
    );
    assert!(page.contains("aria-invalid=\"true\"") && page.contains("id=\"field-mail-error\""), "{page}");
    assert!(
        page.contains("value=\"nope\"") && page.contains("kept text</textarea>"),
        "the entered values are kept: {page}"
    );
    assert_eq!(account.count(form).await, 0);
}

#[tokio::test]
async fn malformed_submissions_are_rejected_with_specific_errors() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let form = account.form(one_text_field()).await;
    let path = submit_path(form);
    let send = async |kind: &str, body: String| {
        edge.visitor.send(Method::POST, "localhost", &path, &[("content-type", kind)], body).await
    };
    let json = "application/json";
    for text in ["", "{", "{\"a\":}", "a=1"] {
        send(json, text.to_owned()).await.problem(400, "malformed_json");
    }
    for text in ["[]", "\"x\"", "[{\"a\":\"x\"}]"] {
        send(json, text.to_owned()).await.problem(400, "validation_failed");
    }
    for kind in ["text/plain", "multipart/mixed; boundary=x", "multipart/form-data", "", "application/jsonx"]
    {
        send(kind, "{\"a\":\"x\"}".to_owned()).await.problem(415, "unsupported_media_type");
    }
    send("Application/JSON; charset=utf-8", "{\"a\":\"x\"}".to_owned()).await;
    let deep = format!("{{\"a\":{}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
    send(json, deep).await.problem(400, "validation_failed");
    assert_eq!(account.submissions(form).await, [serde_json::json!({"a": "x"})]);
}

#[tokio::test]
async fn submissions_are_limited_to_256_kib() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let form = account.form(one_text_field()).await;
    let path = submit_path(form);
    let of_size = |bytes: usize| format!("{{\"a\":\"x\",\"b\":\"{}\"}}", "y".repeat(bytes - 16));
    assert_eq!(of_size(100).len(), 100);
    let json = [("content-type", "application/json")];
    let send = async |body: String| edge.visitor.send(Method::POST, "localhost", &path, &json, body).await;
    assert_eq!(send(of_size(256 << 10)).await.status, StatusCode::CREATED);
    let refused = send(of_size((256 << 10) + 1)).await;
    refused.problem(413, "payload_too_large");
    assert_eq!(refused.header("access-control-allow-origin"), "*");
    let browser = edge.visitor.post_form(&path, &[("a", &"x".repeat(256 << 10))]).await;
    assert_eq!(browser.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert!(browser.text().contains("This is more than the form takes."), "{}", browser.text());
    let chunked = format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nConnection: close\r\n\
         Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{}\r\n0\r\n\r\n",
        300 << 10,
        of_size(300 << 10)
    );
    let response = edge.visitor.raw(chunked.as_bytes()).await;
    assert!(response.starts_with("HTTP/1.1 413"), "a chunked body is limited too: {response}");
    assert_eq!(account.count(form).await, 1);
}

#[tokio::test]
async fn closed_and_full_forms_reject_submissions() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let closed = account.form_with(one_text_field(), |form| form.closes_at = Some(now())).await;
    let full = account.form_with(one_text_field(), |form| form.max_submissions = Some(1)).await;
    let open = account
        .form_with(one_text_field(), |form| form.closes_at = Some(now() + Duration::from_secs(60)))
        .await;
    let answers = json!({"a": "x"});
    assert_eq!(edge.visitor.post(&submit_path(full), &answers).await.status, StatusCode::CREATED);
    assert_eq!(edge.visitor.post(&submit_path(open), &answers).await.status, StatusCode::CREATED);
    edge.visitor.post(&submit_path(closed), &answers).await.problem(410, "form_closed");
    edge.visitor.post(&submit_path(full), &answers).await.problem(410, "form_full");
    assert_eq!((account.count(closed).await, account.count(full).await), (0, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_concurrent_submissions_never_exceed_a_limit_of_ten() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let form = account.form_with(one_text_field(), |form| form.max_submissions = Some(10)).await;
    let webhook = account.webhook(None, &[]).await;
    let path = submit_path(form);
    let sent = (0..50).map(|number| {
        let (visitor, path) = (edge.visitor.clone(), path.clone());
        async move { visitor.post(&path, &json!({"a": format!("{number}")})).await.status }
    });
    let responses = join_all(sent).await;
    let with = |status: StatusCode| responses.iter().filter(|response| **response == status).count();
    assert_eq!((with(StatusCode::CREATED), with(StatusCode::GONE)), (10, 40));
    assert_eq!((account.count(form).await, account.submissions(form).await.len()), (10, 10));
    assert_eq!(account.deliveries(webhook).await.len(), 10, "rejected submissions create no delivery");
}

#[tokio::test]
async fn cors_allows_submissions_from_any_origin() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let form = account.form(one_text_field()).await;
    let path = submit_path(form);
    let preflight_headers = [
        ("origin", "https://elsewhere.test"),
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", "content-type"),
    ];
    let preflight = edge.visitor.send(Method::OPTIONS, "localhost", &path, &preflight_headers, "").await;
    assert_eq!(preflight.status, StatusCode::NO_CONTENT);
    assert_eq!(preflight.header("access-control-allow-methods"), "POST");
    assert!(preflight.header("access-control-allow-headers").contains("content-type"));
    let responses = [
        preflight,
        edge.visitor.post(&path, &json!({"a": "x"})).await,
        edge.visitor.post(&path, &json!({})).await,
        edge.visitor.post_form(&path, &[("a", "x")]).await,
        edge.visitor.post_form(&path, &[]).await,
        edge.visitor.post(&submit_path(Uuid::nil()), &json!({})).await,
        edge.visitor.post("/api/forms/no-id/submit", &json!({})).await,
        edge.visitor.get("localhost", &path).await,
    ];
    let expected = [204, 201, 400, 303, 400, 404, 404, 405];
    for (response, status) in responses.iter().zip(expected) {
        assert_eq!(response.status.as_u16(), status, "{}", response.text());
        let origins: Vec<_> = response.headers.get_all("access-control-allow-origin").iter().collect();
        assert_eq!(origins, ["*"], "{}", response.text());
        assert_eq!(response.header("access-control-allow-credentials"), "", "CORS never allows credentials");
        assert!(!response.header("x-request-id").is_empty());
    }
    let elsewhere = edge.visitor.get("localhost", "/api/account").await;
    assert_eq!(elsewhere.header("access-control-allow-origin"), "", "other paths do not allow CORS");
}

#[tokio::test]
async fn a_get_of_the_submit_url_answers_405_with_allow() {
    let edge = Edge::start().await;
    let response = edge.visitor.get("localhost", &submit_path(Uuid::nil())).await;
    response.problem(405, "method_not_allowed");
    assert!(response.header("allow").contains("POST"));
}
