//! Owner changes to submissions: upsert by external id, update of answers, and status. The form's rules apply to all
//! of them.

use axum::extract::State;
use chrono::{DateTime, Utc};
use domain::answers::{self, Answers};
use domain::forms::ClosedReason;
use domain::scopes::{Action, Resource};
use domain::submissions::{BYTES_MAX, EXTERNAL_ID_CHARS_MAX, Status};
use domain::{FieldError, submissions as rules};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::forms::{Form, lock_form};
use store::submissions::{
    NewSubmission, StatusLimits, SubmissionOutcome, UpdateOutcome, WriteContext, find_id_by_external_id,
    find_submission, insert_submission, update_payload, update_status,
};
use uuid::Uuid;
use web::{Code, CreatedOrChanged, Json, Path, Problem, Reply};

use super::views::{SubmissionResponse, SubmissionView};
use crate::App;
use crate::call::{Call, scope};
use crate::next_steps::After;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct UpsertSubmissionRequest {
    /// Your own id for the submission, unique within the form.
    #[schemars(length(min = 1, max = EXTERNAL_ID_CHARS_MAX))]
    external_id: String,
    /// All answers, by field name.
    payload: Answers,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct UpdateSubmissionRequest {
    /// Answers to set, by field name; null removes one.
    #[schemars(extend("minProperties" = 1))]
    payload: Answers,
    /// The `updatedAt` of an earlier response: if the submission has changed since, the update is rejected.
    if_unmodified_since: Option<DateTime<Utc>>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct UpdateSubmissionStatusRequest {
    /// The new status.
    status: Status,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SubmissionUpsertResponse {
    /// The submission after the change.
    data: SubmissionView,
    /// Whether the submission is new.
    created: bool,
}

pub(super) async fn upsert(
    call: Call<scope::SubmissionsUpdate>,
    State(app): State<App>,
    Path(form_id): Path<Uuid>,
    Json(request): Json<UpsertSubmissionRequest>,
) -> Result<CreatedOrChanged<SubmissionUpsertResponse>, Problem> {
    check_plan(&call)?;
    let errors = rules::check_external_id(&request.external_id);
    if !errors.is_empty() {
        return Err(Problem::validation(errors));
    }
    let (mut tx, form, context) = begin(&call, &app, form_id).await?;
    let normalized = normalize(&form, &request.payload)?;
    let known = find_id_by_external_id(&mut tx, call.account_id, form_id, &request.external_id).await?;
    if let Some(id) = known {
        let submission =
            find_submission(&mut tx, call.account_id, form_id, id).await?.ok_or_else(not_found)?;
        call.rebind_files(&mut tx, &form, &submission, &normalized).await?;
        let changed =
            update_payload(&mut tx, call.account_id, &form, &submission, &normalized, &context.writer())
                .await?;
        let data = finish(&call, &app, tx, &form, changed).await?;
        return Ok(CreatedOrChanged::Changed(call.reply(SubmissionUpsertResponse { data, created: false })));
    }
    call.require_scope(Resource::Submissions, Action::Create)?;
    let new = NewSubmission {
        id: app.rng.uuid_v7(call.now),
        external_id: Some(request.external_id),
        payload: normalized,
        extra: Answers::new(),
        spam_reasons: Vec::new(),
    };
    let plan_limit = call.limits().submissions_per_form;
    let taken =
        insert_submission(&mut tx, call.account_id, &form, &new, plan_limit, &context.writer()).await?;
    let signals = match taken {
        SubmissionOutcome::Stored(signals) => signals,
        SubmissionOutcome::Refused(why) => return Err(refused(why)),
        SubmissionOutcome::Duplicate => return Err(duplicate(&form)),
        // This transaction has locked the form, so it neither changes nor disappears.
        SubmissionOutcome::Changed
        | SubmissionOutcome::Busy
        | SubmissionOutcome::RateLimited
        | SubmissionOutcome::NoForm => {
            return Err(Problem::not_found("form"));
        }
    };
    let submission =
        find_submission(&mut tx, call.account_id, form_id, new.id).await?.ok_or_else(not_found)?;
    call.bind_files(&mut tx, &form, &submission, &submission.payload).await?;
    let data = SubmissionView::find(&mut tx, call.account_id, &form.fields, submission).await?;
    call.commit_and_send(&app, tx, signals).await?;
    let next = call.suggestions(&app, After::Submission { form_id, id: new.id }).await;
    let written = SubmissionUpsertResponse { data, created: true };
    Ok(CreatedOrChanged::Created(call.created(written).with_next(next)))
}

pub(super) async fn update(
    call: Call<scope::SubmissionsUpdate>,
    State(app): State<App>,
    Path((form_id, id)): Path<(Uuid, Uuid)>,
    Json(request): Json<UpdateSubmissionRequest>,
) -> Result<Reply<SubmissionResponse>, Problem> {
    check_plan(&call)?;
    let payload = request.payload;
    if payload.is_empty() {
        let message = "payload must have at least one answer";
        return Err(Problem::validation(vec![FieldError::new("payload", "required", message)]));
    }
    let (mut tx, form, context) = begin(&call, &app, form_id).await?;
    let submission = find_submission(&mut tx, call.account_id, form_id, id).await?.ok_or_else(not_found)?;
    if request.if_unmodified_since.is_some_and(|since| since < submission.updated_at) {
        return Err(web::stale("submission", json!(submission.updated_at)));
    }
    let normalized = normalize(&form, &answers::merge(&submission.payload, payload.clone()))?;
    let normalized = answers::retain_removed_fields(normalized, &form.fields, &submission.payload, &payload);
    check_size(&normalized)?;
    call.rebind_files(&mut tx, &form, &submission, &normalized).await?;
    let changed =
        update_payload(&mut tx, call.account_id, &form, &submission, &normalized, &context.writer()).await?;
    let data = finish(&call, &app, tx, &form, changed).await?;
    Ok(call.reply(SubmissionResponse { data }))
}

pub(super) async fn mark(
    call: Call<scope::SubmissionsUpdate>,
    State(app): State<App>,
    Path((form_id, id)): Path<(Uuid, Uuid)>,
    Json(UpdateSubmissionStatusRequest { status }): Json<UpdateSubmissionStatusRequest>,
) -> Result<Reply<SubmissionResponse>, Problem> {
    let (mut tx, form, context) = begin(&call, &app, form_id).await?;
    let submission = find_submission(&mut tx, call.account_id, form_id, id).await?.ok_or_else(not_found)?;
    // The files are stored already, so they may exceed the plan's storage.
    let limits = StatusLimits { submissions: call.limits().submissions_per_form, storage_bytes: -1 };
    let changed =
        update_status(&mut tx, call.account_id, &form, &submission, status, limits, &context.writer())
            .await?;
    let data = finish(&call, &app, tx, &form, changed).await?;
    Ok(call.reply(SubmissionResponse { data }))
}

/// Time, trace context and id source of a write.
struct OwnedWriteContext {
    now: DateTime<Utc>,
    traceparent: Option<String>,
    new_id: Box<dyn Fn() -> Uuid + Send + Sync>,
}

impl OwnedWriteContext {
    fn writer(&self) -> WriteContext<'_> {
        WriteContext {
            now: self.now,
            traceparent: self.traceparent.as_deref(),
            depth: 0,
            new_id: &self.new_id,
        }
    }
}

/// Locks the form for the change.
async fn begin<S>(
    call: &Call<S>,
    app: &App,
    form_id: Uuid,
) -> Result<(store::Tx, Form, OwnedWriteContext), Problem> {
    let mut tx = store::begin(&app.db).await?;
    call.check_id(&mut tx, Resource::Forms, form_id).await?;
    // Files count against storage, so the usage counters are locked first, as for uploads.
    store::usage::lock(&mut tx, call.account_id).await?;
    let form = lock_form(&mut tx, call.account_id, form_id).await?;
    let (app, now) = (app.clone(), call.now);
    let new_id = Box::new(move || app.rng.uuid_v7(now));
    let context = OwnedWriteContext { now, traceparent: service::telemetry::traceparent(), new_id };
    Ok((tx, form.ok_or_else(|| Problem::not_found("form"))?, context))
}

async fn finish<S>(
    call: &Call<S>,
    app: &App,
    mut tx: store::Tx,
    form: &Form,
    changed: UpdateOutcome,
) -> Result<SubmissionView, Problem> {
    match changed {
        UpdateOutcome::Done(submission, signals) => {
            let view = SubmissionView::find(&mut tx, call.account_id, &form.fields, *submission).await?;
            call.commit_and_send(app, tx, signals).await?;
            Ok(view)
        }
        UpdateOutcome::Duplicate => Err(duplicate(form)),
        UpdateOutcome::Refused(why) => Err(refused(why)),
        UpdateOutcome::StorageFull(bytes) => Err(call.storage_exceeded(bytes)),
        UpdateOutcome::Gone => Err(not_found()),
    }
}

fn check_plan<S>(call: &Call<S>) -> Result<(), Problem> {
    if call.plan().restrictions().contains(&"no_upsert") {
        return Err(call.plan_restricted("writing submissions through the API (no_upsert)"));
    }
    Ok(())
}

/// Validates and normalizes answers as the form stores them.
fn normalize(form: &Form, answers: &Answers) -> Result<Answers, Problem> {
    let normalized = answers::check(&form.fields, answers).map_err(|errors| {
        let prefixed = |error: FieldError| FieldError { field: format!("payload.{}", error.field), ..error };
        Problem::validation(errors.into_iter().map(prefixed).collect())
    })?;
    check_size(&normalized)?;
    Ok(normalized)
}

fn check_size(normalized: &Answers) -> Result<(), Problem> {
    if rules::is_too_large(normalized) {
        let detail = format!("a submission may have at most {} KiB", BYTES_MAX / 1024);
        return Err(Problem::new(Code::PayloadTooLarge, detail));
    }
    Ok(())
}

fn duplicate(form: &Form) -> Problem {
    let fields = form.unique_by.as_deref().unwrap_or_default().join(", ");
    let detail = format!("another submission of this form has the same values of: {fields}");
    Problem::new(Code::DuplicateSubmission, detail)
}

fn refused(why: ClosedReason) -> Problem {
    match why {
        ClosedReason::Closed => Problem::new(Code::FormClosed, "this form is closed"),
        ClosedReason::Full => Problem::new(Code::FormFull, "this form accepts no more submissions"),
    }
}

fn not_found() -> Problem {
    Problem::not_found("submission")
}
