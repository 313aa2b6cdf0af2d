//! Help requests: queued as mail to the operator; header injection is rejected.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::harness::Api;

fn help_request(subject: &str) -> Value {
    json!({"category": "Bug report", "subject": subject, "message": "It is broken.\r\nReally."})
}

#[tokio::test]
async fn a_help_request_is_acknowledged_and_queued_for_mail() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    let mut requested = help_request("Schöne Grüße 🙂");
    requested["email"] = json!("ana@example.com");
    let (status, response) = api.send(Method::POST, "/api/help", Some(&key), &requested).await;
    assert_eq!((status, &response["received"]), (StatusCode::CREATED, &json!(true)), "{response}");
    let due = api.help_due(response["id"].as_str().unwrap()).await;
    assert_eq!(due, Some(("Schöne Grüße 🙂".to_owned(), "ana@example.com".to_owned())));
}

#[tokio::test]
async fn a_subject_with_a_line_break_is_rejected() {
    let api = Api::start(&[]).await;
    let key = api.trial().await;
    for subject in ["a\r\nBcc: eve@evil.test", "a\nb", "a\rb", "\r\n\r\nbody", "a\r\n b"] {
        let (status, problem) = api.send(Method::POST, "/api/help", Some(&key), &help_request(subject)).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{subject:?}: {problem}");
        assert_eq!(problem["fieldErrors"][0]["field"], "subject", "{problem}");
    }
    let mut requested = help_request("s");
    requested["email"] = json!("ana@example.com\r\nBcc: eve@evil.test");
    let (status, problem) = api.send(Method::POST, "/api/help", Some(&key), &requested).await;
    assert_eq!(
        (status, &problem["fieldErrors"][0]["field"]),
        (StatusCode::BAD_REQUEST, &json!("email")),
        "{problem}"
    );
}
