//! Confirms submissions that look like a robot's: a browser is asked for one more click instead of being thanked.
//!
//! The submission is stored as spam first, so that its owner finds it even if the visitor leaves. The click works without
//! JavaScript and once: it receives the submission with all its effects, as its owner would by hand.

use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, post};
use chrono::TimeDelta;
use contract::Signal;
use domain::confirmation::{self, TTL, is_enough};
use domain::forms::ClosedReason;
use domain::honeypot::fields;
use domain::submissions::Status;
use http::{StatusCode, header};
use store::forms::{OpenForm, lock_form};
use store::submissions::{StatusLimits, UpdateOutcome, WriteContext, find_submission, update_status};
use uuid::Uuid;
use web::{Code, Path, Problem};

use super::body::read_limited;
use super::transaction::publish;
use crate::forms::pages::page::Presentation;
use crate::forms::redirect::location;
use crate::state::EdgeState;
use crate::uploads::form_files::storage_full;

/// The result of a click.
enum Outcome {
    /// The submission is received, by this click or before.
    Received,
    Duplicate,
    Refused(ClosedReason),
}

/// Routes the clicks.
pub(crate) fn route() -> MethodRouter<EdgeState> {
    post(confirm)
}

/// Returns the page that asks for the click.
pub(super) fn ask(
    state: &EdgeState,
    open: &OpenForm,
    presentation: Presentation,
    submission_id: Uuid,
) -> Response {
    // Used tokens are remembered for as long as calls with an idempotency key.
    let ttl = TTL.min(TimeDelta::from_std(state.form_settings.idempotency_ttl).unwrap_or(TTL));
    let expires_at = state.clock.now() + ttl;
    let token = confirmation::token(state.form_renderer.key(), open.form.id, submission_id, expires_at);
    state.form_renderer.confirmation(open, presentation, &token)
}

async fn confirm(
    State(state): State<EdgeState>,
    id: Result<Path<Uuid>, Problem>,
    request: Request,
) -> Response {
    let mut presentation = Presentation::from_form(|_| None, request.headers());
    match handle(&state, id, request, &mut presentation).await {
        Ok(response) => response,
        Err(problem) => state.form_renderer.problem(presentation, &problem),
    }
}

/// `presentation` becomes that of the posted page once its body is read.
async fn handle(
    state: &EdgeState,
    id: Result<Path<Uuid>, Problem>,
    request: Request,
    presentation: &mut Presentation,
) -> Result<Response, Problem> {
    let Path(form_id) = id?;
    let (head, body) = request.into_parts();
    let body = read_limited(body).await?;
    let pairs: Vec<(String, String)> = form_urlencoded::parse(&body).into_owned().collect();
    let field = |name: &str| pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
    *presentation = Presentation::from_form(field, &head.headers);
    let open = state.forms.find(form_id).await?;
    let token = field(fields::CONFIRMATION).unwrap_or_default();
    let key = state.form_renderer.key();
    let submission_id = confirmation::verify(key, form_id, token, state.clock.now())
        .ok_or_else(|| Problem::new(Code::Conflict, "this confirmation is not valid any more"))?;
    let (renderer, presentation) = (&state.form_renderer, *presentation);
    Ok(match redeem(state, &open, submission_id, token).await? {
        Outcome::Received => match location(&open, presentation) {
            Some(location) => (StatusCode::SEE_OTHER, [(header::LOCATION, location)]).into_response(),
            None => renderer.thanks(&open, presentation),
        },
        Outcome::Refused(reason) => renderer.closed(&open, presentation, reason),
        Outcome::Duplicate => renderer.duplicate(&open, presentation),
    })
}

/// Receives the submission, and marks the token as used in the same transaction.
async fn redeem(
    state: &EdgeState,
    open: &OpenForm,
    submission_id: Uuid,
    token: &str,
) -> Result<Outcome, Problem> {
    // The clicks of a form wait for each other, like its submissions.
    let _permit = state.admission.transaction_permit(open.form.id).await?;
    let mut unchanged = None;
    let work = async |conn: &mut store::Conn| match receive(state, conn, open, submission_id, token).await? {
        Ok(signals) => Ok(signals),
        Err(outcome) => {
            unchanged = Some(outcome);
            // Only for the rollback.
            Err(Problem::nothing_changed())
        }
    };
    let done = state.db.transaction(state.db.timeout(), work).await;
    if let Some(outcome) = unchanged {
        return Ok(outcome);
    }
    let signals = done?;
    if !signals.is_empty() {
        tokio::spawn(publish(state.clone(), signals));
    }
    Ok(Outcome::Received)
}

/// Does the work of the transaction. Returns signals to send after the commit; otherwise the caller must roll back.
async fn receive(
    state: &EdgeState,
    conn: &mut store::Conn,
    open: &OpenForm,
    submission_id: Uuid,
    token: &str,
) -> Result<Result<Vec<Signal>, Outcome>, Problem> {
    let (account_id, form_id, now) = (open.account_id, open.form.id, state.clock.now());
    let fingerprint = state.form_renderer.key().digest("form.confirmation.used", &[token]);
    let after = now - state.form_settings.idempotency_ttl;
    // The second click of a double click waits for the first: a browser shows the response to the last one.
    if store::idempotency::wait_for_call(conn, account_id, &fingerprint, after).await?.is_some() {
        // Whatever the owner has done with the submission since.
        return Ok(Err(Outcome::Received));
    }
    // The lock order of all that count bytes: counters first.
    store::usage::lock(conn, account_id).await?;
    let form = lock_form(conn, account_id, form_id).await?.ok_or_else(|| Problem::not_found("form"))?;
    let deleted = || Problem::new(Code::Conflict, "this submission was deleted");
    let submission = find_submission(conn, account_id, form_id, submission_id).await?.ok_or_else(deleted)?;
    if submission.status.counts() {
        return Ok(Err(Outcome::Received));
    }
    if !is_enough(&submission.spam_reasons) {
        let detail = "this submission waits for the form's owner, who may still receive it";
        return Err(Problem::new(Code::Conflict, detail));
    }
    let traceparent = service::telemetry::traceparent();
    let new_id = || state.rng.uuid_v7(now);
    let context = WriteContext { now, traceparent: traceparent.as_deref(), depth: 0, new_id: &new_id };
    let plan = open.plan.limits();
    let limits = StatusLimits { submissions: plan.submissions_per_form, storage_bytes: plan.storage_bytes };
    let done =
        update_status(conn, account_id, &form, &submission, Status::Received, limits, &context).await?;
    let signals = match done {
        UpdateOutcome::Done(_, signals) => signals,
        UpdateOutcome::Duplicate => return Ok(Err(Outcome::Duplicate)),
        UpdateOutcome::Refused(reason) => return Ok(Err(Outcome::Refused(reason))),
        UpdateOutcome::StorageFull(_) => return Err(storage_full()),
        UpdateOutcome::Gone => return Err(deleted()),
    };
    store::idempotency::insert_response(conn, account_id, &fingerprint, &[], now).await?;
    Ok(Ok(signals))
}

/// Returns whether a click would receive the submission.
pub(super) async fn is_waiting(
    state: &EdgeState,
    open: &OpenForm,
    submission_id: Uuid,
) -> Result<bool, Problem> {
    let find = async |conn: &mut store::Conn| {
        Ok(find_submission(conn, open.account_id, open.form.id, submission_id).await?)
    };
    let submission = state.db.query(find).await?;
    Ok(submission.is_some_and(|found| found.status == Status::Spam && is_enough(&found.spam_reasons)))
}
