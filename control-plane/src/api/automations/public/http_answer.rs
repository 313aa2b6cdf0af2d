//! The answers of runs to requests of http triggers.
//!
//! They are served on the API's origin with content that any owner chose. So they are sandboxed by a content security
//! policy, and only allowed headers are sent.

use automation::check::is_respond_header;
use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::{HeaderName, HeaderValue, StatusCode, header};
use serde_json::{Map, Value, json};
use store::automations::{RunStatus, find_linked_run};
use uuid::Uuid;
use web::{Code, Problem};

use crate::App;
use crate::automations::AnsweredRun;

const SANDBOX: HeaderValue = HeaderValue::from_static("sandbox");

/// 202: the run was started, and nothing answers the request.
pub(super) fn accepted(run_id: Uuid, status: &str) -> Response {
    let body = json!({"runId": run_id, "status": status}).to_string();
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (header::CONTENT_SECURITY_POLICY, SANDBOX),
    ];
    (StatusCode::ACCEPTED, headers, body).into_response()
}

/// Returns 202 with the run's current status, after the response timeout or at shutdown.
pub(super) async fn unanswered(app: &App, run_id: Uuid) -> Result<Response, Problem> {
    let found = async {
        let mut conn = store::acquire(&app.db).await?;
        find_linked_run(&mut conn, run_id).await
    };
    // The run is stored, so the response says so even if it can't be read now.
    let status = found.await.ok().flatten().map_or(RunStatus::Queued, |run| run.status);
    Ok(accepted(run_id, status.as_str()))
}

/// The answer of a run, or, if it ended without one, its status.
pub(super) fn answer(run_id: Uuid, run: AnsweredRun) -> Result<Response, Problem> {
    if let Some(response) = run.response {
        return Ok(respond(response));
    }
    match run.status {
        RunStatus::Error | RunStatus::Cancelled => {
            let detail = format!("the run ended with the status {} before it answered", run.status.as_str());
            let problem = Problem::new(Code::Internal, detail).with("runId", json!(run_id));
            Err(problem.hint("the owner finds the reason in the log of the automation"))
        }
        status => Ok(accepted(run_id, status.as_str())),
    }
}

/// Builds the response that a `respond` step describes: `{status, headers, body}`.
fn respond(mut response: Value) -> Response {
    let status = response.get("status").and_then(Value::as_u64).and_then(|status| u16::try_from(status).ok());
    let status = status.filter(|status| (200..600).contains(status)).unwrap_or(200);
    let body = response.get_mut("body").map(Value::take).unwrap_or_default();
    let (default_type, bytes) = match body {
        Value::Null => (None, Vec::new()),
        Value::String(text) => (Some("text/plain; charset=utf-8"), text.into_bytes()),
        other => (Some("application/json"), other.to_string().into_bytes()),
    };
    let is_empty = bytes.is_empty() || matches!(status, 204 | 205 | 304);
    let mut sent = Response::new(if is_empty { Body::empty() } else { Body::from(bytes) });
    *sent.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
    let headers = sent.headers_mut();
    for (name, value) in response.get("headers").and_then(Value::as_object).unwrap_or(&Map::new()) {
        let value = value.as_str().and_then(|value| HeaderValue::from_str(value).ok());
        let name = HeaderName::try_from(name).ok().filter(|name| is_respond_header(name.as_str(), status));
        if let (Some(name), Some(value)) = (name, value) {
            headers.insert(name, value);
        }
    }
    if let Some(kind) = default_type.filter(|_| !is_empty) {
        headers.entry(header::CONTENT_TYPE).or_insert(HeaderValue::from_static(kind));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers.insert(header::CONTENT_SECURITY_POLICY, SANDBOX);
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    sent
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_harmless_headers_are_sent() {
        let response = respond(json!({
            "status": 201,
            "headers": {
                "Content-Type": "text/html", "X-Own": "1", "Set-Cookie": "session=1", "Location": "https://a.test",
                "Content-Security-Policy": "default-src *", "Access-Control-Allow-Origin": "*", "X-Frame-Options": "x",
                "Clear-Site-Data": "*", "Service-Worker-Allowed": "/", "X-Broken": "a\r\nSet-Cookie: b", "Refresh": "0",
            },
            "body": "<script>1</script>",
        }));
        assert_eq!(response.status(), 201);
        let headers: Vec<String> = response
            .headers()
            .iter()
            .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
            .collect();
        let mut sorted = headers.clone();
        sorted.sort();
        assert_eq!(
            sorted,
            [
                "cache-control: no-store",
                "content-security-policy: sandbox",
                "content-type: text/html",
                "x-content-type-options: nosniff",
                "x-own: 1"
            ]
        );
    }

    #[test]
    fn a_body_is_json_text_or_nothing() {
        let kind = |response: Value| {
            let headers = respond(response).headers().clone();
            headers.get("content-type").map(|value| value.to_str().unwrap().to_owned())
        };
        assert_eq!(kind(json!({"status": 200, "body": {"a": 1}})).as_deref(), Some("application/json"));
        assert_eq!(kind(json!({"status": 200, "body": "a"})).as_deref(), Some("text/plain; charset=utf-8"));
        assert_eq!(kind(json!({"status": 200})), None);
        assert_eq!(kind(json!({"status": 204, "body": "a"})), None);
        let redirect =
            respond(json!({"status": 302, "headers": {"Location": "/a", "Cache-Control": "max-age=5"}}));
        assert_eq!(
            (redirect.status().as_u16(), &redirect.headers()["location"]),
            (302, &HeaderValue::from_static("/a"))
        );
        assert_eq!(redirect.headers()["cache-control"], "max-age=5");
        assert_eq!(respond(json!({"status": 99})).status(), 200);
    }
}
