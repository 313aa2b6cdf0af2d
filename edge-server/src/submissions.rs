//! Taking submissions: checked, then stored with all that follows from them in one transaction.
//!
//! When a visitor has the answer, the submission, its counter, its files and its webhook deliveries are committed;
//! what happens next is the job-runner's work and needs nobody here.

mod alone;
mod lines;
mod once;
mod parts;
mod reading;
mod together;
mod turns;

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, post};
use chrono::{DateTime, Utc};
use domain::answers::{self, Answers};
use domain::fields::FieldType;
use domain::forms::Shut;
use domain::{Complaint, traps};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::json;
use store::forms::OpenForm;
use store::submissions::{NewSubmission, Plain, Writer};
use uuid::Uuid;
use web::{Code, Path, Problem};

use crate::edge::Edge;
use crate::form_files;
use crate::forms::{self, Given, Manner, onward, refusal};
use alone::Taking;
pub(crate) use lines::Lines;
use lines::{EditTurn, being_edited};
use once::{Call, Receipt};
use reading::{Asker, Sent};
use together::Fate;
pub(crate) use together::Together;

const THANKS: &str = "Thank you. Your answers have been received.";
const ALREADY: &str = "These answers were received before.";
/// Looks at a form that was edited in between, before the visitor is asked to come back.
const TRIES: usize = 5;

/// What became of what was sent.
enum Outcome {
    Stored(Receipt),
    /// It was stored before, under the same `Idempotency-Key`.
    Again(Receipt),
    Refused(Shut),
    Duplicate,
    Wrong(Vec<Complaint>),
    Changed,
    /// It is being edited.
    Busy,
    NoForm,
}

/// Submitting, from pages of any origin: its answers and refusals of every kind may be read by their scripts.
pub(crate) fn route() -> MethodRouter<Edge> {
    post(submit).options(preflight).layer(axum::middleware::map_response(to_everybody))
}

/// Lets pages of any origin read an answer.
pub(crate) async fn to_everybody(mut response: Response) -> Response {
    let everybody = HeaderValue::from_static("*");
    response.headers_mut().insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, everybody);
    response
}

/// What browsers ask before they let a page of another origin post.
pub(crate) async fn preflight() -> Response {
    let headers = [
        (header::ACCESS_CONTROL_ALLOW_METHODS, "POST"),
        (header::ACCESS_CONTROL_ALLOW_HEADERS, "content-type, idempotency-key"),
        (header::ACCESS_CONTROL_MAX_AGE, "86400"),
    ];
    (StatusCode::NO_CONTENT, headers).into_response()
}

async fn submit(
    State(edge): State<Edge>,
    Path(form_id): Path<Uuid>,
    request: Request,
) -> Result<Response, Problem> {
    let asker = Asker::of(request.headers());
    let manner = Manner::of(None, None, request.headers());
    match carry_out(&edge, form_id, asker, request).await {
        // People are told in a page.
        Err(problem) if asker == Asker::Browser => Ok(edge.forms.problem(manner, &problem)),
        answered => answered,
    }
}

async fn carry_out(edge: &Edge, form_id: Uuid, asker: Asker, request: Request) -> Result<Response, Problem> {
    let mut open = edge.forms.find(form_id).await?;
    let call = Call::read(edge.forms.key(), form_id, request.headers())?;
    let sent = reading::read(edge, &open, request).await?;
    // Before anything is checked: by now the form may be another, or shut.
    if let Some(call) = &call
        && let Some(receipt) = call.find(edge, open.account_id, &sent).await?
    {
        return Ok(again(&open, &receipt, &sent, asker));
    }
    if let Some(why) = sent.shut {
        return refuse(edge, &open, why, &sent, asker);
    }
    let (mut turn, mut looks) = (None, 0);
    while looks < TRIES {
        let given = sent.answers(&open);
        let outcome = match check(edge, &open, &given, &sent).await? {
            Ok(kept) => take(edge, &open, &sent, call.as_ref(), turn.as_ref(), kept).await?,
            Err(wrong) => Outcome::Wrong(wrong),
        };
        match (outcome, asker) {
            (Outcome::Stored(receipt), _) => return Ok(thank(&open, &receipt, &sent, asker)),
            (Outcome::Again(receipt), _) => return Ok(again(&open, &receipt, &sent, asker)),
            (Outcome::Wrong(wrong), Asker::Program) => return Err(Problem::validation(wrong)),
            (Outcome::Wrong(wrong), Asker::Browser) => {
                return ask_again(edge, &open, &sent, given, wrong).await;
            }
            (Outcome::Refused(why), _) => {
                if forms::why_shut(&open, edge.clock.now()).is_none() {
                    // It was filled since it was looked up: whoever comes next need not send files to learn that.
                    edge.forms.forget(form_id);
                }
                return refuse(edge, &open, why, &sent, asker);
            }
            (Outcome::Duplicate, _) => return duplicate(edge, &open, &sent, asker),
            (Outcome::NoForm, _) => {
                return Err(Problem::new(Code::NotFound, "there is no form at this address"));
            }
            (Outcome::Busy, _) if turn.is_none() => {
                turn = Some(edge.form_lines.edited().await?);
            }
            (Outcome::Busy, _) => return Err(being_edited()),
            // The next look shows what it has become.
            (Outcome::Changed, _) => {
                looks += 1;
                edge.forms.forget(form_id);
                open = edge.forms.find(form_id).await?;
            }
        }
    }
    Err(Problem::away(true))
}

/// The answers to keep, or all that is wrong: of a file that was refused as it came, that.
async fn check(
    edge: &Edge,
    open: &Arc<OpenForm>,
    given: &Answers,
    sent: &Sent,
) -> Result<Result<Answers, Vec<Complaint>>, Problem> {
    let checked = if answers::is_heavy(&open.form.fields, given) {
        let (form, given) = (Arc::clone(open), given.clone());
        edge.form_lines.work(open.account_id, move || answers::check(&form.form.fields, &given)).await?
    } else {
        answers::check(&open.form.fields, given)
    };
    if sent.wrong.is_empty() {
        return Ok(checked);
    }
    let mut wrong = checked.err().unwrap_or_default();
    wrong.retain(|one| sent.wrong.iter().all(|file| file.field != one.field));
    wrong.extend(sent.wrong.iter().cloned());
    Ok(Err(wrong))
}

async fn take(
    edge: &Edge,
    open: &OpenForm,
    sent: &Sent,
    call: Option<&Call>,
    turn: Option<&EditTurn<'_>>,
    kept: Answers,
) -> Result<Outcome, Problem> {
    let now = edge.clock.now();
    let spam_reasons = spam_reasons(edge, open, sent, now);
    let new = NewSubmission { id: edge.rng.uuid_v7(now), external_id: None, payload: kept, spam_reasons };
    let mut is_left_out = false;
    if call.is_none()
        && turn.is_none()
        && let Some(plain) = plain(edge, open, &new, now)
    {
        match edge.together.take(plain).await {
            Fate::Stored => return Ok(Outcome::Stored(receipt(open, &new, now))),
            Fate::Away => return Err(Problem::away(true)),
            Fate::Unknown => return Err(Problem::away(false)),
            Fate::LeftOut => is_left_out = true,
        }
    }
    Taking { edge, open, sent, call, turn, now, is_left_out }.take(new).await
}

/// The submission as one of those that are stored together; none if more is to be done for it.
fn plain(edge: &Edge, open: &OpenForm, new: &NewSubmission, now: DateTime<Utc>) -> Option<Plain> {
    let asks_for_files = open.form.fields.iter().any(|field| field.kind == FieldType::File);
    if asks_for_files || open.form.spam.proof_of_work {
        return None;
    }
    let traceparent = if open.listeners > 0 { service::telemetry::traceparent() } else { None };
    let new_id = || edge.rng.uuid_v7(now);
    Plain::of(open, new, &Writer { now, traceparent: traceparent.as_deref(), new_id: &new_id })
}

/// Why this is taken for a robot's. Only pages of ours set traps: programs, and forms of somebody's own, know none.
fn spam_reasons(edge: &Edge, open: &OpenForm, sent: &Sent, now: DateTime<Utc>) -> Vec<String> {
    let guard = &open.form.spam;
    let honeypot = sent.said(traps::fields::HONEYPOT).filter(|_| guard.honeypot);
    let said = (sent.said(traps::fields::TOKEN), honeypot);
    let reasons = traps::judge(edge.forms.key(), open.form.id, said, i64::from(guard.min_seconds), now);
    reasons.into_iter().map(suspect).collect()
}

fn suspect(reason: &'static str) -> String {
    service::metrics::counter("edge_submission_suspect_total").add(1, &[("reason", reason)]);
    reason.to_owned()
}

fn receipt(open: &OpenForm, submission: &NewSubmission, now: DateTime<Utc>) -> Receipt {
    let body = json!({
        "success": true,
        "submissionId": submission.id,
        "message": open.form.success_message.as_deref().unwrap_or(THANKS),
        "redirectUrl": onward(open),
        "createdAt": now,
    });
    Receipt(body.to_string())
}

/// What was answered before.
fn again(open: &OpenForm, receipt: &Receipt, sent: &Sent, asker: Asker) -> Response {
    let mut response = thank(open, receipt, sent, asker);
    response.headers_mut().insert("idempotent-replayed", HeaderValue::from_static("true"));
    response
}

/// Browsers are sent on, so that a reload asks for a page and doesn't post again.
fn thank(open: &OpenForm, receipt: &Receipt, sent: &Sent, asker: Asker) -> Response {
    match (asker, forms::after(open, sent.manner)) {
        (Asker::Browser, Some(location)) => {
            (StatusCode::SEE_OTHER, [(header::LOCATION, location)]).into_response()
        }
        _ => {
            let headers = [(header::CONTENT_TYPE, "application/json")];
            (StatusCode::CREATED, headers, receipt.0.clone()).into_response()
        }
    }
}

/// The form once more, with what was given and what is wrong with it.
async fn ask_again(
    edge: &Edge,
    open: &OpenForm,
    sent: &Sent,
    answers: Answers,
    wrong: Vec<Complaint>,
) -> Result<Response, Problem> {
    let files = form_files::waiting(edge, open, &answers).await?;
    // The page is as old as it was: whoever mends one letter is no robot.
    let token = sent.said(traps::fields::TOKEN);
    let given = Given { answers, wrong: &wrong, files: &files, token };
    Ok(edge.forms.page(open, sent.manner, &given, edge.clock.now()))
}

fn refuse(edge: &Edge, open: &OpenForm, why: Shut, sent: &Sent, asker: Asker) -> Result<Response, Problem> {
    match asker {
        Asker::Browser => Ok(edge.forms.shut(open, sent.manner, why)),
        Asker::Program => Err(Problem::new(forms::code_of(why), refusal(why))),
    }
}

fn duplicate(edge: &Edge, open: &OpenForm, sent: &Sent, asker: Asker) -> Result<Response, Problem> {
    let words = &edge.forms.words(sent.manner).page;
    match asker {
        Asker::Browser => {
            Ok(edge.forms.notice(sent.manner, StatusCode::CONFLICT, &open.form.name, &words.duplicate))
        }
        Asker::Program => Err(Problem::new(Code::DuplicateSubmission, ALREADY)),
    }
}

/// What a header says; nothing if it can't be read.
fn said<'a>(headers: &'a HeaderMap, name: &header::HeaderName) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}
