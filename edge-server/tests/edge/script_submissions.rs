//! Submissions of scripts and programs: JSON responses that pages of other origins may read, and JSON bodies made of forms.

use http::{Method, StatusCode};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::client::{NAVIGATION, TestResponse};
use crate::fixtures::{now, one_text_field, submit_path};
use crate::harness::Edge;

const ORIGIN: (&str, &str) = ("origin", "https://elsewhere.test");

/// Posts a form with these headers, URL-encoded and as multipart. Both responses are of one kind.
async fn post(edge: &Edge, form: Uuid, value: &str, headers: &[(&str, &str)]) -> [TestResponse; 2] {
    let parts = format!("--xx\r\ncontent-disposition: form-data; name=\"a\"\r\n\r\n{value}\r\n--xx--\r\n");
    let bodies = [
        ("application/x-www-form-urlencoded", format!("a={value}")),
        ("multipart/form-data; boundary=xx", parts),
    ];
    let mut responses = Vec::new();
    for (kind, body) in bodies {
        let headers = [&[("content-type", kind), ORIGIN], headers].concat();
        let path = submit_path(form);
        responses.push(edge.visitor.send(Method::POST, "localhost", &path, &headers, body).await);
    }
    responses.try_into().unwrap()
}

#[tokio::test]
async fn fetch_and_curl_get_json_and_a_navigation_gets_a_page() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let url = "https://example.com/thanks";
    let form = account.form_with(one_text_field(), |form| form.redirect_url = Some(url.to_owned())).await;
    let mode = |mode: &'static str| ("sec-fetch-mode", mode);
    let scripts: [&[(&str, &str)]; 7] = [
        &[],
        &[("accept", "*/*")],
        &[("accept", "*/*"), mode("cors")],
        &[("accept", "application/json")],
        &[("accept", "application/json"), mode("navigate")],
        &[NAVIGATION, mode("cors")],
        &[NAVIGATION, mode("no-cors")],
    ];
    for headers in scripts {
        for response in post(&edge, form, "x", headers).await {
            assert_eq!(response.status, StatusCode::CREATED, "{headers:?}: {}", response.text());
            assert_eq!(response.header("content-type"), "application/json");
            assert_eq!(response.header("access-control-allow-origin"), "*");
            let receipt = response.json();
            assert_eq!((&receipt["success"], &receipt["redirectUrl"]), (&json!(true), &json!(url)));
        }
    }
    let navigations: [&[(&str, &str)]; 4] = [
        &[NAVIGATION],
        &[NAVIGATION, mode("navigate")],
        &[("accept", "Text/HTML")],
        &[("accept", "application/json"), ("accept", "text/html")],
    ];
    for headers in navigations {
        for response in post(&edge, form, "x", headers).await {
            assert_eq!((response.status, response.header("location")), (StatusCode::SEE_OTHER, url));
        }
    }
    // JSON is never posted by a navigation.
    let headers = [("content-type", "application/json"), NAVIGATION];
    let json =
        edge.visitor.send(Method::POST, "localhost", &submit_path(form), &headers, "{\"a\":\"x\"}").await;
    assert_eq!(json.status, StatusCode::CREATED);
    assert_eq!(account.count(form).await, 2 * (7 + 4) + 1);
}

#[tokio::test]
async fn scripts_get_refusals_as_json_that_other_origins_may_read() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let required = json!([{"name": "a", "label": "Your name", "type": "text", "required": true}]);
    let form = account.form(required.clone()).await;
    let closed = account.form_with(required.clone(), |form| form.closes_at = Some(now())).await;
    let full = account.form_with(required.clone(), |form| form.max_submissions = Some(1)).await;
    let unique = account.form_with(required, |form| form.unique_by = Some(vec!["a".to_owned()])).await;
    for form in [full, unique] {
        assert_eq!(
            edge.visitor.post(&submit_path(form), &json!({"a": "x"})).await.status,
            StatusCode::CREATED
        );
    }
    let fetch = [("accept", "*/*"), ("sec-fetch-mode", "cors")];
    for (form, value, status, code) in [
        (form, "", 400, "validation_failed"),
        (closed, "x", 410, "form_closed"),
        (full, "x", 410, "form_full"),
        (unique, "x", 409, "duplicate_submission"),
        (Uuid::nil(), "x", 404, "not_found"),
    ] {
        for refused in post(&edge, form, value, &fetch).await {
            let problem = refused.problem(status, code);
            assert_eq!(refused.header("access-control-allow-origin"), "*");
            if status == 400 {
                let expected =
                    json!([{"field": "a", "code": "required", "message": "Your name is required"}]);
                assert_eq!(problem["fieldErrors"], expected);
            }
        }
    }
    let headers = [("content-type", "multipart/form-data; boundary=xx"), fetch[0]];
    let broken =
        edge.visitor.send(Method::POST, "localhost", &submit_path(form), &headers, "--xx\r\nno").await;
    assert_eq!(broken.problem(400, "validation_failed")["fieldErrors"][0]["field"], "body");
}

#[tokio::test]
async fn json_made_of_form_data_is_accepted_like_the_form() {
    let edge = Edge::start().await;
    let account = edge.account("quiet-otter").await;
    let form = account
        .form(json!([
            {"name": "guests", "label": "Guests", "type": "number", "min": 1, "max": 8},
            {"name": "terms", "label": "Terms", "type": "checkbox", "required": true},
            {"name": "news", "label": "News", "type": "checkbox"},
            {"name": "topics", "label": "Topics", "type": "multiselect", "options": ["x", "y"]},
            {"name": "mail", "label": "Mail", "type": "email"},
            {"name": "site", "label": "Site", "type": "url"},
            {"name": "phone", "label": "Phone", "type": "tel"},
        ]))
        .await;
    let body = "guests=7&terms=on&news=false&topics=x&mail=+ada%40b%C3%BCcher.example+\
                &site=https%3A%2F%2Fb%C3%BCcher.example&phone=%2B44%C2%A020%207946%200000+ext.+12";
    let made: Value = form_urlencoded::parse(body.as_bytes())
        .map(|(name, value)| (name.into_owned(), Value::from(value.into_owned())))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let mut lists = made.clone();
    for (_, value) in lists.as_object_mut().unwrap() {
        *value = json!([value]);
    }
    let headers = [("content-type", "application/x-www-form-urlencoded")];
    let posted = edge.visitor.send(Method::POST, "localhost", &submit_path(form), &headers, body).await;
    assert_eq!(posted.status, StatusCode::CREATED, "{}", posted.text());
    for body in [made, lists] {
        let sent = edge.visitor.post(&submit_path(form), &body).await;
        assert_eq!(sent.status, StatusCode::CREATED, "{}", sent.text());
    }
    let expected = json!({
        "guests": 7, "terms": true, "news": false, "topics": ["x"], "mail": "ada@bücher.example",
        "site": "https://bücher.example", "phone": "+44\u{a0}20 7946 0000 ext. 12",
    });
    assert_eq!(account.submissions(form).await, [expected.clone(), expected.clone(), expected]);
    let wrong = json!({"guests": "seven", "terms": "false", "topics": "z"});
    let problem = edge.visitor.post(&submit_path(form), &wrong).await.problem(400, "validation_failed");
    let named: Vec<_> = problem["fieldErrors"].as_array().unwrap().iter().map(|one| &one["field"]).collect();
    assert_eq!(named, ["guests", "terms", "topics"]);
}
