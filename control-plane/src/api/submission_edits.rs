//! What a form's owner does to submissions: writes them by a name of their own, changes answers, tells spam from the
//! rest. The form's rules hold for all of it.

use axum::extract::State;
use chrono::{DateTime, Utc};
use domain::answers::{self, Answers};
use domain::forms::Shut;
use domain::scopes::{Action, Resource};
use domain::submissions::{BYTES_MAX, EXTERNAL_ID_CHARS_MAX, Status};
use domain::{Complaint, submissions as rules};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::forms::{Form, lock_form};
use store::submissions::{
    Changed, NewSubmission, Taken, Writer, find_id_by_external_id, find_submission, take_submission,
    update_payload, update_status,
};
use uuid::Uuid;
use web::{Code, CreatedOrChanged, Json, Path, Problem, Reply};

use super::submissions::SubmissionView;
use crate::App;
use crate::call::{Call, scope};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Upsert {
    /// Your own name for the submission; no two of a form have the same.
    #[schemars(length(min = 1, max = EXTERNAL_ID_CHARS_MAX))]
    external_id: String,
    /// All answers, by field name.
    payload: Answers,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Merge {
    /// Answers to be put over those there are, by field name; null takes one away.
    #[schemars(extend("minProperties" = 1))]
    payload: Answers,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Mark {
    status: Status,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Written {
    data: SubmissionView,
    /// Whether it is new.
    created: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Edited {
    data: SubmissionView,
}

pub(super) async fn upsert(
    call: Call<scope::SubmissionsUpdate>,
    State(app): State<App>,
    Path(form_id): Path<Uuid>,
    Json(given): Json<Upsert>,
) -> Result<CreatedOrChanged<Written>, Problem> {
    check_plan(&call)?;
    let complaints = rules::check_external_id(&given.external_id);
    if !complaints.is_empty() {
        return Err(Problem::validation(complaints));
    }
    let (mut tx, form, pen) = begin(&call, &app, form_id).await?;
    let kept = kept(&form, &given.payload)?;
    let known = find_id_by_external_id(&mut tx, call.account_id, form_id, &given.external_id).await?;
    if let Some(id) = known {
        let submission = find_submission(&mut tx, call.account_id, form_id, id).await?.ok_or_else(none)?;
        call.rebind_files(&mut tx, &form, &submission, &kept).await?;
        let changed =
            update_payload(&mut tx, call.account_id, &form, &submission, &kept, &pen.writer()).await?;
        let data = finish(&call, &app, tx, &form, changed).await?;
        return Ok(CreatedOrChanged::Changed(call.reply(Written { data, created: false })));
    }
    call.require_scope(Resource::Submissions, Action::Create)?;
    let new = NewSubmission {
        id: app.rng.uuid_v7(call.now),
        external_id: Some(given.external_id),
        payload: kept,
        spam_reasons: Vec::new(),
    };
    let plan_limit = call.limits().submissions_per_form;
    let taken = take_submission(&mut tx, call.account_id, &form, &new, plan_limit, &pen.writer()).await?;
    let signals = match taken {
        Taken::Stored(signals) => signals,
        Taken::Refused(why) => return Err(refused(why)),
        Taken::Duplicate => return Err(duplicate(&form)),
        // The form's row is ours: it neither changes nor goes.
        Taken::Changed | Taken::Busy | Taken::NoForm => return Err(Problem::not_found("form")),
    };
    let submission = find_submission(&mut tx, call.account_id, form_id, new.id).await?.ok_or_else(none)?;
    call.bind_files(&mut tx, &form, &submission, &submission.payload).await?;
    let data = SubmissionView::find(&mut tx, call.account_id, submission).await?;
    app.commit_and_send(tx, signals).await?;
    let written = Written { data, created: true };
    Ok(CreatedOrChanged::Created(call.created(written)))
}

pub(super) async fn update(
    call: Call<scope::SubmissionsUpdate>,
    State(app): State<App>,
    Path((form_id, id)): Path<(Uuid, Uuid)>,
    Json(Merge { payload }): Json<Merge>,
) -> Result<Reply<Edited>, Problem> {
    check_plan(&call)?;
    if payload.is_empty() {
        let message = "payload must have at least one answer";
        return Err(Problem::validation(vec![Complaint::new("payload", "required", message)]));
    }
    let (mut tx, form, pen) = begin(&call, &app, form_id).await?;
    let submission = find_submission(&mut tx, call.account_id, form_id, id).await?.ok_or_else(none)?;
    let kept = kept(&form, &answers::merged(&submission.payload, payload.clone()))?;
    let kept = answers::with_past(kept, &form.fields, &submission.payload, &payload);
    check_size(&kept)?;
    call.rebind_files(&mut tx, &form, &submission, &kept).await?;
    let changed = update_payload(&mut tx, call.account_id, &form, &submission, &kept, &pen.writer()).await?;
    let data = finish(&call, &app, tx, &form, changed).await?;
    Ok(call.reply(Edited { data }))
}

pub(super) async fn mark(
    call: Call<scope::SubmissionsUpdate>,
    State(app): State<App>,
    Path((form_id, id)): Path<(Uuid, Uuid)>,
    Json(Mark { status }): Json<Mark>,
) -> Result<Reply<Edited>, Problem> {
    let (mut tx, form, pen) = begin(&call, &app, form_id).await?;
    let submission = find_submission(&mut tx, call.account_id, form_id, id).await?.ok_or_else(none)?;
    let plan_limit = call.limits().submissions_per_form;
    let changed =
        update_status(&mut tx, call.account_id, &form, &submission, status, plan_limit, &pen.writer())
            .await?;
    let data = finish(&call, &app, tx, &form, changed).await?;
    Ok(call.reply(Edited { data }))
}

/// What a change is written with.
struct Pen {
    now: DateTime<Utc>,
    traceparent: Option<String>,
    new_id: Box<dyn Fn() -> Uuid + Send + Sync>,
}

impl Pen {
    fn writer(&self) -> Writer<'_> {
        Writer { now: self.now, traceparent: self.traceparent.as_deref(), new_id: &self.new_id }
    }
}

/// Takes the form for the change.
async fn begin<S>(call: &Call<S>, app: &App, form_id: Uuid) -> Result<(store::Tx, Form, Pen), Problem> {
    let mut tx = store::begin(&app.db).await?;
    call.check_id(&mut tx, Resource::Forms, form_id).await?;
    // Files count with their submissions: the counters first, as for whoever hands in files.
    store::usage::lock(&mut tx, call.account_id).await?;
    let form = lock_form(&mut tx, call.account_id, form_id).await?;
    let (app, now) = (app.clone(), call.now);
    let new_id = Box::new(move || app.rng.uuid_v7(now));
    let pen = Pen { now, traceparent: service::telemetry::traceparent(), new_id };
    Ok((tx, form.ok_or_else(|| Problem::not_found("form"))?, pen))
}

async fn finish<S>(
    call: &Call<S>,
    app: &App,
    mut tx: store::Tx,
    form: &Form,
    changed: Changed,
) -> Result<SubmissionView, Problem> {
    match changed {
        Changed::Done(submission, signals) => {
            let view = SubmissionView::find(&mut tx, call.account_id, *submission).await?;
            app.commit_and_send(tx, signals).await?;
            Ok(view)
        }
        Changed::Duplicate => Err(duplicate(form)),
        Changed::Refused(why) => Err(refused(why)),
        Changed::Gone => Err(none()),
    }
}

fn check_plan<S>(call: &Call<S>) -> Result<(), Problem> {
    if call.plan().restrictions().contains(&"no_upsert") {
        return Err(call.plan_restricted("writing submissions by hand (no_upsert)"));
    }
    Ok(())
}

/// What the form keeps of the answers.
fn kept(form: &Form, given: &Answers) -> Result<Answers, Problem> {
    let kept = answers::check(&form.fields, given).map_err(|complaints| {
        let placed =
            |complaint: Complaint| Complaint { field: format!("payload.{}", complaint.field), ..complaint };
        Problem::validation(complaints.into_iter().map(placed).collect())
    })?;
    check_size(&kept)?;
    Ok(kept)
}

fn check_size(kept: &Answers) -> Result<(), Problem> {
    if rules::is_too_large(kept) {
        let detail = format!("a submission may have at most {} KiB", BYTES_MAX / 1024);
        return Err(Problem::new(Code::PayloadTooLarge, detail));
    }
    Ok(())
}

fn duplicate(form: &Form) -> Problem {
    let fields = form.unique_by.as_deref().unwrap_or_default().join(", ");
    let detail = format!("another submission of this form has the same: {fields}");
    Problem::new(Code::DuplicateSubmission, detail)
}

fn refused(why: Shut) -> Problem {
    match why {
        Shut::Closed => Problem::new(Code::FormClosed, "this form is closed"),
        Shut::Full => Problem::new(Code::FormFull, "this form takes no more submissions"),
    }
}

fn none() -> Problem {
    Problem::not_found("submission")
}
