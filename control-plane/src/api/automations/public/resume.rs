//! The link that resumes a run. GET shows a page with a button and changes nothing, because mail scanners fetch links too;
//! POST resumes, once. The token in the link is the proof, so no key is needed.

use automation::http_trigger::is_too_deep;
use axum::body::Bytes;
use axum::extract::{FromRequest, Request, State};
use axum::response::{IntoResponse, Response};
use contract::Signal;
use domain::automations::is_resume_token;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::{Map, Value, json};
use store::automations::{LinkedRun, RunStatus, find_linked_run, resume_run};
use uuid::Uuid;
use web::{ClientIp, Code, Path, Problem, check_not_compressed, json_syntax_error};

use super::http_trigger::too_deep;
use super::resume_page::{Page, page};
use crate::App;

/// Run, number of the wait, token.
type Link = Path<(Uuid, u32, String)>;

pub(super) async fn show(
    State(app): State<App>,
    ip: ClientIp,
    link: Result<Link, Problem>,
    headers: HeaderMap,
) -> Response {
    let shown = async {
        app.request_rate.hit(ip, app.clock.now())?;
        let (run_id, number) = read_link(&app, link)?;
        let mut conn = store::acquire(&app.db).await?;
        let run = find_linked_run(&mut conn, run_id).await?.ok_or_else(unknown)?;
        drop(conn);
        check(&app, run, number)?;
        Ok(run_id)
    };
    match shown.await {
        Ok(_) if is_browser(&headers) => page(StatusCode::OK, Page::Button),
        Ok(run_id) => {
            let hint = "send a POST request to this URL to resume the run";
            json_response(&json!({"runId": run_id, "status": RunStatus::Waiting.as_str(), "hint": hint}))
        }
        Err(problem) => refused(problem, &headers),
    }
}

pub(super) async fn resume(
    State(app): State<App>,
    ip: ClientIp,
    link: Result<Link, Problem>,
    headers: HeaderMap,
    request: Request,
) -> Response {
    let resumed = async {
        app.request_rate.hit(ip, app.clock.now())?;
        let (run_id, number) = read_link(&app, link)?;
        let body = Bytes::from_request(request, &app).await.map_err(|rejection| {
            if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
                return Problem::new(Code::PayloadTooLarge, "the body is too large");
            }
            Problem::malformed_json("the body could not be read completely")
        })?;
        let payload = read_payload(&headers, &body)?;
        let now = app.clock.now();
        let mut tx = store::begin(&app.db).await?;
        let run = find_linked_run(&mut tx, run_id).await?.ok_or_else(unknown)?;
        check(&app, run, number)?;
        let account_id =
            resume_run(&mut tx, run_id, i32::try_from(number).unwrap_or(-1), &payload, now).await?;
        let account_id = account_id.ok_or_else(not_waiting)?;
        app.commit_and_send(tx, vec![Signal::RunsDue { account_ids: vec![account_id] }]).await?;
        Ok(run_id)
    };
    match resumed.await {
        Ok(_) if is_browser(&headers) => page(StatusCode::OK, Page::Resumed),
        Ok(run_id) => json_response(&json!({"runId": run_id, "resumed": true})),
        Err(problem) => refused(problem, &headers),
    }
}

/// Checks the token. A wrong token gets the same 404 as an unknown run.
fn read_link(app: &App, link: Result<Link, Problem>) -> Result<(Uuid, u32), Problem> {
    let Path((run_id, number, token)) = link.map_err(|_| unknown())?;
    if is_resume_token(&app.master_key, run_id, number, &token) {
        Ok((run_id, number))
    } else {
        Err(unknown())
    }
}

/// Checks that the run waits for this link.
fn check(app: &App, run: LinkedRun, number: u32) -> Result<(), Problem> {
    if run.status.is_ended() {
        let problem = Problem::new(Code::Conflict, "this link has expired: its run has ended");
        return Err(problem.with_status(StatusCode::GONE));
    }
    let is_this = run.resume_number.is_some_and(|waits_for| u32::try_from(waits_for) == Ok(number));
    if run.status != RunStatus::Waiting || !is_this {
        return Err(not_waiting());
    }
    if run.due_at.is_none_or(|due_at| due_at <= app.clock.now()) {
        let problem = Problem::new(Code::Conflict, "this link has expired: the time to use it has passed");
        return Err(problem.with_status(StatusCode::GONE));
    }
    Ok(())
}

fn unknown() -> Problem {
    Problem::new(Code::NotFound, "this link is wrong, or its run was deleted")
}

fn not_waiting() -> Problem {
    let detail =
        "the run does not wait for this link: the link was used already, or the run has not come to it yet";
    Problem::new(Code::Conflict, detail)
}

/// Returns the JSON body, or the fields of a form as an object.
fn read_payload(headers: &HeaderMap, body: &[u8]) -> Result<Value, Problem> {
    check_not_compressed(headers)?;
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = kind.split_once(';').map_or(kind, |(kind, _)| kind).trim();
    let payload = if body.is_empty() {
        json!({})
    } else if kind.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
        let pairs = form_urlencoded::parse(body);
        Value::Object(
            pairs.map(|(name, value)| (name.into_owned(), value.into_owned().into())).collect::<Map<_, _>>(),
        )
    } else if kind.eq_ignore_ascii_case("application/json") {
        serde_json::from_slice(body)
            .map_err(|error| json_syntax_error(&error, body.trim_ascii().is_empty()))?
    } else {
        return Err(Problem::new(Code::UnsupportedMediaType, "the body must be JSON or a form"));
    };
    if is_too_deep(&payload) {
        return Err(too_deep());
    }
    web::nul_error(&payload).map_or(Ok(payload), |error| Err(Problem::validation(vec![error])))
}

fn is_browser(headers: &HeaderMap) -> bool {
    let accepted = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    accepted.is_some_and(|accepted| accepted.contains("text/html"))
}

fn refused(problem: Problem, headers: &HeaderMap) -> Response {
    if !is_browser(headers) {
        return problem.into_response();
    }
    let text = match problem.code() {
        Code::Unavailable | Code::Internal => {
            "Something went wrong on our side. Please try again in a moment."
        }
        _ => problem.detail(),
    };
    page(problem.status(), Page::Refused(text))
}

fn json_response(body: &Value) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/json")),
        (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    ];
    (headers, body.to_string()).into_response()
}
