//! Taking submissions: checked, then stored with all that follows from them in one transaction.
//!
//! When a visitor has the answer, the submission, its counter, its files and its webhook deliveries are committed;
//! what happens next is the job-runner's work and needs nobody here.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, post};
use chrono::{DateTime, Utc};
use domain::answers::{self, Answers};
use domain::fields::FieldType;
use domain::forms::ClosedReason;
use domain::{FieldError, honeypot};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::json;
use store::forms::OpenForm;
use store::submissions::{BatchSubmission, NewSubmission, WriteContext};
use uuid::Uuid;
use web::{Code, Path, Problem};

use super::admission::{EditPermit, being_edited};
use super::body::{self, ClientKind, Sent};
use super::group_commit::BatchOutcome;
use super::idempotency::{Call, Receipt};
use super::transaction::StoreSubmission;
use crate::forms::{self, Given, Presentation, redirect_target, refusal};
use crate::state::EdgeState;
use crate::uploads::form_files::storage as form_files;

const THANKS: &str = "Thank you. Your answers have been received.";
const ALREADY: &str = "These answers were received before.";
/// Looks at a form that was edited in between, before the visitor is asked to come back.
const TRIES: usize = 5;

/// What became of what was sent.
pub(super) enum Outcome {
    Stored(Receipt),
    /// It was stored before, under the same `Idempotency-Key`.
    Again(Receipt),
    Refused(ClosedReason),
    Duplicate,
    Wrong(Vec<FieldError>),
    Changed,
    /// It is being edited.
    Busy,
    NoForm,
}

/// Submitting, from pages of any origin: its answers and refusals of every kind may be read by their scripts.
pub(crate) fn route() -> MethodRouter<EdgeState> {
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
    State(edge): State<EdgeState>,
    Path(form_id): Path<Uuid>,
    request: Request,
) -> Result<Response, Problem> {
    let asker = ClientKind::of(request.headers());
    let manner = Presentation::of(None, None, request.headers());
    match carry_out(&edge, form_id, asker, request).await {
        // People are told in a page.
        Err(problem) if asker == ClientKind::Browser => Ok(edge.forms.problem(manner, &problem)),
        answered => answered,
    }
}

async fn carry_out(
    edge: &EdgeState,
    form_id: Uuid,
    asker: ClientKind,
    request: Request,
) -> Result<Response, Problem> {
    let mut open = edge.forms.find(form_id).await?;
    let call = Call::read(edge.forms.key(), form_id, request.headers())?;
    let sent = body::read(edge, &open, request).await?;
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
            (Outcome::Wrong(wrong), ClientKind::Program) => return Err(Problem::validation(wrong)),
            (Outcome::Wrong(wrong), ClientKind::Browser) => {
                return ask_again(edge, &open, &sent, given, wrong).await;
            }
            (Outcome::Refused(why), _) => {
                if forms::closed_reason(&open, edge.clock.now()).is_none() {
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
    Err(Problem::nothing_changed())
}

/// The answers to keep, or all that is wrong: of a file that was refused as it came, that.
async fn check(
    edge: &EdgeState,
    open: &Arc<OpenForm>,
    given: &Answers,
    sent: &Sent,
) -> Result<Result<Answers, Vec<FieldError>>, Problem> {
    let checked = if answers::is_slow(&open.form.fields, given) {
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
    edge: &EdgeState,
    open: &OpenForm,
    sent: &Sent,
    call: Option<&Call>,
    turn: Option<&EditPermit<'_>>,
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
            BatchOutcome::Stored => return Ok(Outcome::Stored(receipt(open, &new, now))),
            BatchOutcome::Away => return Err(Problem::nothing_changed()),
            BatchOutcome::Unknown => return Err(Problem::outcome_unknown()),
            BatchOutcome::LeftOut => is_left_out = true,
        }
    }
    StoreSubmission { edge, open, sent, call, turn, now, is_left_out }.take(new).await
}

/// The submission as one of those that are stored together; none if more is to be done for it.
fn plain(
    edge: &EdgeState,
    open: &OpenForm,
    new: &NewSubmission,
    now: DateTime<Utc>,
) -> Option<BatchSubmission> {
    let asks_for_files = open.form.fields.iter().any(|field| field.kind == FieldType::File);
    if asks_for_files || open.form.spam.proof_of_work {
        return None;
    }
    let traceparent = if open.listeners > 0 { service::telemetry::traceparent() } else { None };
    let new_id = || edge.rng.uuid_v7(now);
    BatchSubmission::of(
        open,
        new,
        &WriteContext { now, traceparent: traceparent.as_deref(), new_id: &new_id },
    )
}

/// Why this is taken for a robot's. Only pages of ours set traps: programs, and forms of somebody's own, know none.
fn spam_reasons(edge: &EdgeState, open: &OpenForm, sent: &Sent, now: DateTime<Utc>) -> Vec<String> {
    let guard = &open.form.spam;
    let honeypot = sent.said(honeypot::fields::HONEYPOT).filter(|_| guard.honeypot);
    let said = (sent.said(honeypot::fields::TOKEN), honeypot);
    let reasons =
        honeypot::spam_signals(edge.forms.key(), open.form.id, said, i64::from(guard.min_seconds), now);
    reasons.into_iter().map(suspect).collect()
}

pub(super) fn suspect(reason: &'static str) -> String {
    service::metrics::counter("edge_submission_suspect_total").add(1, &[("reason", reason)]);
    reason.to_owned()
}

pub(super) fn receipt(open: &OpenForm, submission: &NewSubmission, now: DateTime<Utc>) -> Receipt {
    let body = json!({
        "success": true,
        "submissionId": submission.id,
        "message": open.form.success_message.as_deref().unwrap_or(THANKS),
        "redirectUrl": redirect_target(open),
        "createdAt": now,
    });
    Receipt(body.to_string())
}

/// What was answered before.
fn again(open: &OpenForm, receipt: &Receipt, sent: &Sent, asker: ClientKind) -> Response {
    let mut response = thank(open, receipt, sent, asker);
    response.headers_mut().insert("idempotent-replayed", HeaderValue::from_static("true"));
    response
}

/// Browsers are sent on, so that a reload asks for a page and doesn't post again.
fn thank(open: &OpenForm, receipt: &Receipt, sent: &Sent, asker: ClientKind) -> Response {
    match (asker, forms::after(open, sent.manner)) {
        (ClientKind::Browser, Some(location)) => {
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
    edge: &EdgeState,
    open: &OpenForm,
    sent: &Sent,
    answers: Answers,
    wrong: Vec<FieldError>,
) -> Result<Response, Problem> {
    let files = form_files::waiting(edge, open, &answers).await?;
    // The page is as old as it was: whoever mends one letter is no robot.
    let token = sent.said(honeypot::fields::TOKEN);
    let given = Given { answers, wrong: &wrong, files: &files, token };
    Ok(edge.forms.page(open, sent.manner, &given, edge.clock.now()))
}

fn refuse(
    edge: &EdgeState,
    open: &OpenForm,
    why: ClosedReason,
    sent: &Sent,
    asker: ClientKind,
) -> Result<Response, Problem> {
    match asker {
        ClientKind::Browser => Ok(edge.forms.shut(open, sent.manner, why)),
        ClientKind::Program => Err(Problem::new(forms::code_of(why), refusal(why))),
    }
}

fn duplicate(edge: &EdgeState, open: &OpenForm, sent: &Sent, asker: ClientKind) -> Result<Response, Problem> {
    let words = &edge.forms.words(sent.manner).page;
    match asker {
        ClientKind::Browser => {
            Ok(edge.forms.notice(sent.manner, StatusCode::CONFLICT, &open.form.name, &words.duplicate))
        }
        ClientKind::Program => Err(Problem::new(Code::DuplicateSubmission, ALREADY)),
    }
}

/// What a header says; nothing if it can't be read.
pub(super) fn said<'a>(headers: &'a HeaderMap, name: &header::HeaderName) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}
