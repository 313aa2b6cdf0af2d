//! A single submission: read and deleted by its id.

use axum::extract::State;
use domain::scopes::Resource;
use store::submissions::{WriteContext, delete_submission, find_submission};
use uuid::Uuid;
use web::{Deletion, Path, Problem, Reply};

use super::effects::SubmissionEffectsView;
use super::views::{SubmissionDetailResponse, SubmissionView};
use crate::App;
use crate::call::{Call, scope};

pub(super) async fn read(
    call: Call<scope::SubmissionsRead>,
    State(app): State<App>,
    Path((form_id, id)): Path<(Uuid, Uuid)>,
) -> Result<Reply<SubmissionDetailResponse>, Problem> {
    let mut conn = store::acquire(&app.db).await?;
    call.check_id(&mut conn, Resource::Forms, form_id).await?;
    let form = store::forms::find_form(&mut conn, call.account_id, form_id).await?;
    let form = form.ok_or_else(|| Problem::not_found("form"))?;
    let submission = find_submission(&mut conn, call.account_id, form_id, id).await?;
    let submission = submission.ok_or_else(|| Problem::not_found("submission"))?;
    let data = SubmissionView::find(&mut conn, call.account_id, &form.fields, submission).await?;
    let effects = SubmissionEffectsView::find(&call, &mut conn, id).await?;
    Ok(call.reply(SubmissionDetailResponse { data, effects }))
}

pub(super) async fn delete_one(
    call: Call<scope::SubmissionsDelete>,
    State(app): State<App>,
    Path((form_id, id)): Path<(Uuid, Uuid)>,
) -> Result<Reply<Deletion>, Problem> {
    let traceparent = service::telemetry::traceparent();
    let new_id = || app.rng.uuid_v7(call.now);
    let writer =
        WriteContext { now: call.now, traceparent: traceparent.as_deref(), depth: 0, new_id: &new_id };
    let mut tx = store::begin(&app.db).await?;
    call.check_id(&mut tx, Resource::Forms, form_id).await?;
    let deleted = delete_submission(&mut tx, call.account_id, form_id, id, &writer).await?;
    let signals = deleted.ok_or_else(|| Problem::not_found("submission"))?;
    call.commit_and_send(&app, tx, signals).await?;
    Ok(call.reply(Deletion::now()))
}
