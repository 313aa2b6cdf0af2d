//! The URL of an http trigger: a request to it starts a run, and may wait for the run's answer.
//!
//! An unknown automation, a disabled one and one of a suspended account get the same 404, so probing reveals nothing.

use std::sync::Arc;

use automation::http_trigger::{Proof, SECRET_HEADER, is_proved, is_too_deep, seen_headers};
use axum::body::Bytes;
use axum::extract::{FromRequest, Request, State};
use axum::response::{IntoResponse, Response};
use domain::json_bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use serde_json::{Map, Value, json};
use store::automations::{InsertedRun, NewRun};
use tokio::time::Instant;
use uuid::Uuid;
use web::{ClientIp, Code, Path, Problem, check_not_compressed, json_syntax_error};

use super::super::depth::read_depth;
use super::http_answer::{accepted, answer, unanswered};
use crate::App;
use crate::automations::{HttpTarget, RequestedRun, evaluate_concurrency};

const ANY: HeaderValue = HeaderValue::from_static("*");

pub(super) async fn run(
    State(app): State<App>,
    ip: ClientIp,
    Path((id, slug)): Path<(Uuid, String)>,
    request: Request,
) -> Response {
    // Counts the request before any lookup, body read or comparison, so that guesses are rate-limited too.
    if let Err(problem) = app.request_rate.hit(ip, app.clock.now()) {
        return problem.into_response();
    }
    let target = match app.http_targets.find(id).await {
        Ok(Some(target)) if target.slug == slug => target,
        Ok(_) => return unknown().into_response(),
        Err(problem) => return problem.into_response(),
    };
    if target.cors && request.method() == Method::OPTIONS {
        return preflight(&target);
    }
    let response = if request.method().as_str() == target.method {
        let handled = handle(&app, id, &target, request).await;
        handled.unwrap_or_else(IntoResponse::into_response)
    } else {
        wrong_method(&target)
    };
    if target.cors { with_cors(response) } else { response }
}

async fn handle(
    app: &App,
    id: Uuid,
    target: &Arc<HttpTarget>,
    request: Request,
) -> Result<Response, Problem> {
    let now = app.clock.now();
    let (trigger, depth) = read_trigger(app, target, request).await?;
    let (concurrency, trigger) = evaluate_concurrency(target.concurrency.clone(), trigger).await?;
    let run_id = app.rng.uuid_v7(now);
    let deadline = Instant::now() + app.automations.respond_timeout;
    let waiter = target.has_respond.then(|| app.run_waiters.register(target.account_id, run_id)).flatten();
    let bytes = json_bytes(&trigger);
    let run = NewRun {
        id: run_id,
        automation_id: id,
        definition_hash: target.definition_hash.clone(),
        trigger_type: "http",
        concurrency,
        trigger,
        is_test: false,
        depth,
        submission_id: None,
        source_submission_id: None,
        fire_at: None,
        traceparent: service::telemetry::traceparent(),
    };
    let requested = RequestedRun { account_id: target.account_id, runs_limit: target.runs_limit, run, bytes };
    match app.run_inserts.insert(requested).await? {
        InsertedRun::Queued => {}
        InsertedRun::OverLimit => {
            let detail = "this automation's account has used all its runs of this month";
            return Err(Problem::new(Code::QuotaExceeded, detail).with("limit", json!(target.runs_limit)));
        }
        InsertedRun::Absent => return Err(unknown()),
    }
    let Some(waiter) = waiter else { return Ok(accepted(run_id, "queued")) };
    match waiter.wait_until(deadline).await {
        Some(answered) => answer(run_id, answered),
        None => unanswered(app, run_id).await,
    }
}

/// Returns what the run's expressions read as `trigger`, and its depth. Headers and body of the request are gone then: a
/// request that waits for its answer must not hold them.
async fn read_trigger(app: &App, target: &HttpTarget, request: Request) -> Result<(Value, i16), Problem> {
    let (method, uri, headers) = (request.method().clone(), request.uri().clone(), request.headers().clone());
    let body = Bytes::from_request(request, app).await.map_err(refused_body)?;
    // Authenticates before parsing, so that a caller without the secret gets no parse errors.
    check_auth(target, &headers, &body, app.clock.now())?;
    let depth = read_depth(&headers)?;
    let payload = read_payload(&headers, &body)?;
    let trigger = json!({
        "payload": payload,
        "query": query_of(&uri),
        "method": method.as_str(),
        "headers": seen_headers(
            headers.iter().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)))
        ),
    });
    match web::nul_error(&trigger) {
        Some(error) => Err(Problem::validation(vec![error])),
        None => Ok((trigger, depth)),
    }
}

fn unknown() -> Problem {
    Problem::new(Code::NotFound, "there is nothing at this URL")
}

fn refused_body(rejection: axum::extract::rejection::BytesRejection) -> Problem {
    if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
        let max = automation::http_trigger::BODY_BYTES_MAX >> 10;
        return Problem::new(Code::PayloadTooLarge, format!("the body may have at most {max} KB"));
    }
    Problem::malformed_json("the body could not be read completely")
}

/// Returns the JSON body; null without one.
fn read_payload(headers: &HeaderMap, body: &[u8]) -> Result<Value, Problem> {
    if body.is_empty() {
        return Ok(Value::Null);
    }
    check_not_compressed(headers)?;
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = kind.split_once(';').map_or(kind, |(kind, _)| kind).trim().to_ascii_lowercase();
    if kind != "application/json" && !(kind.starts_with("application/") && kind.ends_with("+json")) {
        let problem =
            Problem::new(Code::UnsupportedMediaType, format!("the body must be JSON, not `{kind}`"));
        return Err(problem.hint("send `Content-Type: application/json`"));
    }
    let payload = serde_json::from_slice(body)
        .map_err(|error| json_syntax_error(&error, body.trim_ascii().is_empty()))?;
    if is_too_deep(&payload) { Err(too_deep()) } else { Ok(payload) }
}

/// 400: the stored payload could not be read back.
pub(super) fn too_deep() -> Problem {
    let max = automation::http_trigger::BODY_DEPTH_MAX;
    Problem::malformed_json(format!("the body is nested deeper than {max} levels"))
}

fn check_auth(
    target: &HttpTarget,
    headers: &HeaderMap,
    body: &[u8],
    now: chrono::DateTime<chrono::Utc>,
) -> Result<(), Problem> {
    let Some((kind, secret)) = &target.auth else { return Ok(()) };
    let one = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let proof = Proof {
        secret: one(SECRET_HEADER),
        id: one("webhook-id"),
        timestamp: one("webhook-timestamp"),
        signature: one("webhook-signature"),
    };
    if is_proved(*kind, secret, proof, body, now) {
        return Ok(());
    }
    Err(Problem::new(Code::Unauthenticated, "the secret or signature of this request is missing or wrong"))
}

/// Returns the query by name. Of repeated names the first is taken, as of headers.
fn query_of(uri: &Uri) -> Map<String, Value> {
    let mut query = Map::new();
    for (name, value) in form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()) {
        query.entry(name.into_owned()).or_insert_with(|| value.into_owned().into());
    }
    query
}

fn wrong_method(target: &HttpTarget) -> Response {
    let allowed = if target.cors { format!("{}, OPTIONS", target.method) } else { target.method.to_owned() };
    let problem = Problem::new(Code::MethodNotAllowed, format!("this URL allows {allowed}"));
    ([(header::ALLOW, allowed)], problem).into_response()
}

/// Answers whether scripts of other sites may send a request. They never send credentials with it: browsers refuse `*`
/// for those.
fn preflight(target: &HttpTarget) -> Response {
    let headers = [
        (header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(target.method)),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, ANY),
        (header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600")),
    ];
    with_cors((StatusCode::NO_CONTENT, headers).into_response())
}

fn with_cors(mut response: Response) -> Response {
    response.headers_mut().insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, ANY);
    response.headers_mut().insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, ANY);
    response
}
