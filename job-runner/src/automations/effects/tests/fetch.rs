//! `fetch`: what is sent, and how answers are read.

use automation::execution::{Effect, EffectCall, EffectError, Failure};
use axum::response::IntoResponse;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::fixture::{Fixture, call, call_at, failure, object};
use super::receiver::Receiver;
use crate::automations::effects::{is_transactional, perform};

pub(super) fn get(url: impl Into<String>) -> Effect {
    Effect::Fetch { method: "GET", url: url.into(), headers: object(json!({})), body: None }
}

fn post(url: String, headers: Value, body: Value) -> Effect {
    Effect::Fetch { method: "POST", url, headers: object(headers), body: Some(body) }
}

#[tokio::test]
async fn a_request_has_its_headers_and_its_answer_is_parsed() {
    let fixture = Fixture::new().await;
    let answer = || {
        let headers = [("content-type", "application/json"), ("set-cookie", "s=1"), ("x-a", "1")];
        (StatusCode::CREATED, headers, "{\"id\": 7}")
    };
    let receiver = Receiver::answering(answer).await;
    let mut context = fixture.run_of("http", 2).await;
    context.traceparent = Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".to_owned());
    let headers = json!({"Authorization": "Bearer t", "webruntime-depth": "0"});
    let effect = post(format!("{}/a?b=c", receiver.origin), headers, json!({"n": 1}));
    assert!(!is_transactional(&effect));
    let first = call_at("each[3].send", effect);
    let output = perform(&context, first.clone()).await.unwrap();
    assert_eq!((&output["status"], &output["body"]), (&json!(201), &json!({"id": 7})));
    assert_eq!((&output["headers"]["x-a"], output["headers"].get("set-cookie")), (&json!("1"), None));
    perform(&context, EffectCall { attempt: 2, ..first }).await.unwrap();
    let received = receiver.received();
    assert_eq!(received.len(), 2);
    for request in received {
        assert_eq!((&request.method, request.uri.to_string().as_str()), (&Method::POST, "/a?b=c"));
        assert_eq!(request.body, "{\"n\":1}".as_bytes());
        let expected = [
            ("content-type", "application/json"),
            ("authorization", "Bearer t"),
            ("webruntime-depth", "3"),
            ("idempotency-key", &format!("{}-each[3].send", context.claim.run_id)),
            ("traceparent", context.traceparent.as_deref().unwrap()),
        ];
        for (name, value) in expected {
            assert_eq!(request.header(name), Some(value), "{name}");
        }
        assert!(request.header("user-agent").unwrap().starts_with("webruntime/"));
    }
}

#[tokio::test]
async fn a_text_is_sent_as_it_is_with_a_type_that_fits() {
    let fixture = Fixture::new().await;
    let receiver = Receiver::answering(|| "ok").await;
    for (headers, body, expected) in [
        (json!({}), json!("a=b"), "text/plain; charset=utf-8"),
        (json!({}), json!(" {\"a\": 1}"), "application/json"),
        (json!({}), json!("{oops"), "text/plain; charset=utf-8"),
        (
            json!({"Content-Type": "application/x-www-form-urlencoded"}),
            json!("a=b"),
            "application/x-www-form-urlencoded",
        ),
    ] {
        let output = fixture.perform(post(receiver.origin.clone(), headers, body.clone())).await.unwrap();
        assert_eq!(output["body"], json!("ok"));
        let request = receiver.received().pop().unwrap();
        assert_eq!(
            (request.header("content-type"), &request.body[..]),
            (Some(expected), body.as_str().unwrap().as_bytes())
        );
    }
    fixture.perform(get(receiver.origin.clone())).await.unwrap();
    assert_eq!(receiver.received().pop().unwrap().header("content-type"), None);
}

async fn failed_with(fixture: &Fixture, status: u16) -> Failure {
    let receiver =
        Receiver::answering(move || (StatusCode::from_u16(status).unwrap(), "reason").into_response()).await;
    fixture.failure(get(format!("{}/T0K3N?key=T0K3N", receiver.origin))).await
}

#[tokio::test]
async fn an_error_status_is_a_failure_with_the_answer() {
    let fixture = Fixture::new().await;
    for (status, is_transient) in [
        (400, false),
        (401, false),
        (404, false),
        (408, true),
        (409, false),
        (410, false),
        (425, true),
        (429, true),
        (500, true),
        (502, true),
        (503, true),
    ] {
        let failed = failed_with(&fixture, status).await;
        assert_eq!(failed.is_transient, is_transient, "{status}");
        assert!(failed.message.starts_with(&format!("127.0.0.1 answered {status}")), "{failed:?}");
        assert!(!failed.message.contains("T0K3N"));
        let output = failed.output.unwrap();
        assert_eq!((&output["status"], &output["body"]), (&json!(status), &json!("reason")));
    }
}

#[tokio::test]
async fn a_call_without_an_answer_names_the_host_and_no_secret() {
    let fixture = Fixture::new().await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent = listener.local_addr().unwrap();
    let large = Receiver::answering(|| "x".repeat((1 << 20) + 1)).await;
    let fits = Receiver::answering(|| "x".repeat(1 << 20)).await;
    let context = fixture.run().await;
    for (url, is_transient, expected) in [
        ("http://127.0.0.1:1/T0K3N?T0K3N".to_owned(), true, "127.0.0.1: the connection failed"),
        (format!("http://{silent}/T0K3N"), true, "127.0.0.1: the response timed out"),
        (format!("{}/T0K3N", large.origin), false, "127.0.0.1: the answer has more than 1 MB"),
        (
            "https://T0K3N:T0K3N@example.com/".to_owned(),
            false,
            "example.com: the URL is refused: it must not contain",
        ),
        (
            "http://example.com/T0K3N".to_owned(),
            false,
            "example.com: the URL is refused: it must begin with https",
        ),
        ("T0K3N".to_owned(), false, "url: it is not a URL"),
    ] {
        let mut call = call(get(url));
        call.timeout =
            std::time::Duration::from_millis(if expected.contains("timed out") { 300 } else { 15_000 });
        let failed = failure(perform(&context, call).await);
        assert!(failed.message.starts_with(expected), "{failed:?}");
        assert!(!failed.message.contains("T0K3N"), "{failed:?}");
        assert_eq!(failed.is_transient, is_transient, "{failed:?}");
        assert_eq!(failed.output, None);
    }
    let output = perform(&context, call(get(fits.origin))).await.unwrap();
    assert_eq!(output["body"].as_str().unwrap().len(), 1 << 20);
}

#[tokio::test]
async fn headers_of_the_connection_and_broken_values_are_refused() {
    let fixture = Fixture::new().await;
    let receiver = Receiver::answering(|| "ok").await;
    for headers in [
        json!({"Host": "other"}),
        json!({"Idempotency-Key": "mine"}),
        json!({"X-A": "S3CRET\r\nX-B: 1"}),
        json!({"X-A: 1\r\nX-B": "1"}),
    ] {
        let failed = fixture.failure(post(receiver.origin.clone(), headers, json!("x"))).await;
        assert!(failed.message.starts_with("headers.") && !failed.message.contains("S3CRET"), "{failed:?}");
    }
    assert_eq!(receiver.count(), 0);
}

#[tokio::test]
async fn a_cancelled_run_sends_nothing_more() {
    let fixture = Fixture::new().await;
    let receiver = Receiver::answering(|| "ok").await;
    let context = fixture.run().await;
    fixture.change("update automation_runs set status = 'cancelled', lease_id = null, due_at = null").await;
    assert_eq!(perform(&context, call(get(receiver.origin.clone()))).await, Err(EffectError::Lost));
    let context = fixture.run().await;
    fixture.change("update accounts set suspended_at = now()").await;
    assert_eq!(perform(&context, call(get(receiver.origin.clone()))).await, Err(EffectError::Lost));
    assert_eq!(receiver.count(), 0);
}

#[tokio::test]
async fn a_deep_path_has_an_idempotency_key_that_fits() {
    let fixture = Fixture::new().await;
    let receiver = Receiver::answering(|| "ok").await;
    let context = fixture.run().await;
    for path in ["a".repeat(300), "b".repeat(300)] {
        perform(&context, call_at(&path, get(receiver.origin.clone()))).await.unwrap();
    }
    let keys: Vec<_> = receiver
        .received()
        .iter()
        .map(|request| request.header("idempotency-key").unwrap().to_owned())
        .collect();
    assert_ne!(keys[0], keys[1]);
    assert!(keys.iter().all(|key| domain::idempotency::is_key(key.as_bytes())), "{keys:?}");
}
