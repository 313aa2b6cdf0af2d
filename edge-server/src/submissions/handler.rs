//! `POST /api/forms/{id}/submit`: checks a submission and stores it with all its effects.
//!
//! When the visitor gets the response, the submission, its counter, its files and its webhook deliveries are committed.
//! The rest is the job-runner's work.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::map_response;
use axum::response::Response;
use axum::routing::{MethodRouter, post};
use chrono::{DateTime, Utc};
use domain::answers::{self, Answers, UnknownAnswers};
use domain::fields::FieldType;
use domain::{FieldError, depth, honeypot};
use http::HeaderMap;
use store::forms::OpenForm;
use store::submissions::{BatchSubmission, NewSubmission, SubmissionOutcome, WriteContext};
use uuid::Uuid;
use web::{Code, Path, Problem};

use super::admission::{EditPermit, form_is_being_edited};
use super::body;
use super::confirmation;
use super::deadline::Deadline;
use super::idempotency::{IdempotentCall, Receipt};
use super::rate_limit::Exceeded;
use super::responses::Responder;
use super::spam::{flag, spam_reasons};
use super::submitted_body::{ClientKind, SubmittedBody};
use super::transaction::{Attempt, StoreSubmission};
use crate::cors::{allow_any_origin, preflight};
use crate::forms::closed::closed_reason;
use crate::forms::pages::page::Presentation;
use crate::state::EdgeState;

/// Attempts for a form that is edited between check and insert, before the visitor has to retry.
const MAX_ATTEMPTS: usize = 5;

/// Routes submissions from pages of any origin. Their scripts may read every response, including errors.
pub(crate) fn route() -> MethodRouter<EdgeState> {
    post(submit)
        .options(async || preflight("POST", "content-type, idempotency-key"))
        .layer(map_response(allow_any_origin))
}

async fn submit(
    State(state): State<EdgeState>,
    Path(form_id): Path<Uuid>,
    request: Request,
) -> Result<Response, Problem> {
    let client = ClientKind::of(request.headers());
    let presentation = Presentation::from_form(|_| None, request.headers());
    match handle(&state, form_id, client, request).await {
        // A browser gets problems as a page.
        Err(problem) if client == ClientKind::Browser => {
            Ok(state.form_renderer.problem(presentation, &problem))
        }
        response => response,
    }
}

async fn handle(
    state: &EdgeState,
    form_id: Uuid,
    client: ClientKind,
    request: Request,
) -> Result<Response, Problem> {
    let depth = request_depth(request.headers());
    if depth::is_loop(depth) {
        let detail =
            "this submission comes from a chain of webhook deliveries that calls itself; it was not stored";
        return Err(Problem::new(Code::LoopDetected, detail)
            .hint("let no webhook post to the submit address of a form"));
    }
    let ip = state.trusted_proxies.client_ip(request.headers(), request.extensions());
    let ip = ip.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    let mut open = state.forms.find(form_id).await?;
    let call = IdempotentCall::read(state.form_renderer.key(), form_id, request.headers())?;
    let body = body::read(state, &open, request).await?;
    let deadline = Deadline::after(state.form_settings.lock_timeout);
    let responder = Responder { state, body: &body, client };
    // Before any check, because the form may have changed or closed since the first call.
    if let Some(call) = &call
        && let Some(receipt) = deadline.bound(call.find(state, open.account_id, &body)).await?
    {
        return deadline.bound(responder.replayed(&open, &receipt)).await;
    }
    if let Some(reason) = body.closed {
        return responder.closed(&open, reason);
    }
    let (mut permit, mut attempts, mut rate) = (None, 0, None);
    while attempts < MAX_ATTEMPTS {
        let answers = body.answers(&open);
        let attempt = match deadline.bound(check(state, &open, &answers, &body)).await? {
            Ok((payload, unknown)) => {
                let now = state.clock.now();
                // Counted once, however often the form changes meanwhile.
                let rate = *rate.get_or_insert_with(|| {
                    state.submission_rate.hit(state.form_renderer.key(), &open.form, ip, now)
                });
                if let Some(exceeded) = rate
                    && state.submission_rate.is_full(form_id, now)
                {
                    return Err(exceeded.problem());
                }
                let (call, permit, is_rate_limited) = (call.as_ref(), permit.as_ref(), rate.is_some());
                let storing = Storing { body: &body, client, call, permit, deadline, depth, is_rate_limited };
                storing.store(state, &open, payload, unknown).await?
            }
            Err(errors) => Attempt::Invalid(errors),
        };
        match attempt {
            Attempt::Replayed(receipt) => {
                return deadline.bound(responder.replayed(&open, &receipt)).await;
            }
            Attempt::Suspected(id) => return Ok(confirmation::ask(state, &open, body.presentation, id)),
            Attempt::Invalid(errors) => {
                return deadline.bound(responder.invalid(&open, answers, errors)).await;
            }
            Attempt::Finished(outcome, receipt) => match outcome {
                SubmissionOutcome::Stored(_) => return Ok(responder.stored(&open, &receipt)),
                SubmissionOutcome::Refused(reason) => {
                    if closed_reason(&open, state.clock.now()).is_none() {
                        // The form filled up after it was cached. Later visitors should not upload files to learn that.
                        state.forms.remove(form_id);
                    }
                    return responder.closed(&open, reason);
                }
                SubmissionOutcome::Duplicate => return responder.duplicate(&open),
                SubmissionOutcome::RateLimited => {
                    state.submission_rate.mark_full(form_id, state.clock.now());
                    return Err(rate.flatten().map_or_else(Problem::nothing_changed, Exceeded::problem));
                }
                SubmissionOutcome::NoForm => {
                    return Err(Problem::new(Code::NotFound, "there is no form at this address"));
                }
                SubmissionOutcome::Busy if permit.is_none() => {
                    permit = Some(deadline.bound(state.admission.edit_permit()).await?);
                }
                SubmissionOutcome::Busy => return Err(form_is_being_edited()),
                // Reload the form and try again.
                SubmissionOutcome::Changed => {
                    attempts += 1;
                    state.forms.remove(form_id);
                    open = deadline.bound(state.forms.find(form_id)).await?;
                }
            },
        }
    }
    Err(Problem::nothing_changed())
}

/// Returns the depth of the chain of deliveries that sent a request.
fn request_depth(headers: &HeaderMap) -> i16 {
    depth::parse(headers.get_all(depth::HEADER).iter().filter_map(|value| value.to_str().ok()))
}

/// Returns the answers to store and those to unknown fields, or all errors. A file rejected on arrival has that error only.
async fn check(
    state: &EdgeState,
    open: &Arc<OpenForm>,
    answers: &Answers,
    body: &SubmittedBody,
) -> Result<Result<(Answers, UnknownAnswers), Vec<FieldError>>, Problem> {
    let checked = if answers::is_slow(&open.form.fields, answers) {
        let (form, answers) = (Arc::clone(open), answers.clone());
        let check = move || answers::check(&form.form.fields, &answers);
        state.admission.run_blocking(open.account_id, check).await?
    } else {
        answers::check(&open.form.fields, answers)
    };
    let (checked, unknown) = match (checked, body.unknown_answers(open)) {
        (Ok(payload), Ok(unknown)) if body.file_errors.is_empty() => return Ok(Ok((payload, unknown))),
        (checked, unknown) => (checked.err(), unknown.err()),
    };
    let mut errors = checked.unwrap_or_default();
    errors.retain(|error| body.file_errors.iter().all(|file| file.field != error.field));
    errors.extend(body.file_errors.iter().cloned());
    errors.extend(unknown.into_iter().flatten());
    Ok(Err(errors))
}

/// How a submission is stored.
struct Storing<'a> {
    body: &'a SubmittedBody,
    client: ClientKind,
    call: Option<&'a IdempotentCall>,
    permit: Option<&'a EditPermit<'a>>,
    deadline: Deadline,
    depth: i16,
    /// Whether its address has sent too many.
    is_rate_limited: bool,
}

impl Storing<'_> {
    /// Stores a checked submission: in a group commit if possible, otherwise in its own transaction.
    async fn store(
        &self,
        state: &EdgeState,
        open: &OpenForm,
        payload: Answers,
        unknown: UnknownAnswers,
    ) -> Result<Attempt, Problem> {
        let &Self { body, client, call, permit, deadline, depth, is_rate_limited } = self;
        let now = state.clock.now();
        let mut spam_reasons = spam_reasons(state, open, body, now);
        if is_rate_limited {
            spam_reasons.push(flag(honeypot::reasons::RATE));
        }
        let UnknownAnswers { ignored, stored: extra } = unknown;
        let new =
            NewSubmission { id: state.rng.uuid_v7(now), external_id: None, payload, extra, spam_reasons };
        let receipt = Receipt::new(open, new.id, &ignored, now);
        let mut was_skipped = false;
        if call.is_none()
            && permit.is_none()
            && let Some(submission) = batch_submission(state, open, &new, depth, now)
        {
            if state.group_commit.store(submission, deadline.instant()).await? {
                return Ok(Attempt::Finished(SubmissionOutcome::Stored(Vec::new()), receipt));
            }
            was_skipped = true;
        }
        let transaction =
            StoreSubmission { state, open, body, client, call, permit, now, was_skipped, deadline, depth };
        transaction.store(new, receipt).await
    }
}

/// Returns the submission for a group commit; `None` if storing it has effects beyond that.
fn batch_submission(
    state: &EdgeState,
    open: &OpenForm,
    new: &NewSubmission,
    depth: i16,
    now: DateTime<Utc>,
) -> Option<BatchSubmission> {
    let has_files = open.form.fields.iter().any(|field| field.kind == FieldType::File);
    if has_files || open.form.spam.proof_of_work {
        return None;
    }
    let traceparent = if open.listeners > 0 { service::telemetry::traceparent() } else { None };
    let new_id = || state.rng.uuid_v7(now);
    BatchSubmission::of(
        open,
        new,
        &WriteContext { now, traceparent: traceparent.as_deref(), depth, new_id: &new_id },
    )
}
