//! The right to be forgotten: all that somebody has submitted to a form goes, with everything made of it.

use axum::extract::State;
use domain::Complaint;
use domain::answers::is_email;
use domain::scopes::Resource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::submissions::{Erased, Writer, erase_submissions};
use uuid::Uuid;
use web::{Path, Problem, Query, Reply};

use crate::App;
use crate::call::{Call, scope};

/// The endpoints.
pub(super) fn resource() -> web::Resource<App> {
    web::Resource::new("submissions").delete(
        "/api/forms/{id}/submissions",
        delete,
        "Delete all submissions of an e-mail address for good, with all that was made of them",
    )
}

/// Submissions of one transaction.
const BATCH: i64 = 500;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Whose {
    /// As it was answered to a field of type email, in small or capital letters.
    #[schemars(extend("format" = "email"))]
    email: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Forgotten {
    /// How many submissions were deleted.
    deleted: i64,
}

async fn delete(
    call: Call<scope::SubmissionsDelete>,
    State(app): State<App>,
    Path(form_id): Path<Uuid>,
    Query(whose): Query<Whose>,
) -> Result<Reply<Forgotten>, Problem> {
    let email = whose.email.trim();
    if !is_email(email) {
        let complaint = Complaint::new("email", "email", "email must be an e-mail address");
        return Err(Problem::validation(vec![complaint]));
    }
    let traceparent = service::telemetry::traceparent();
    let new_id = || app.rng.uuid_v7(call.now);
    let writer = Writer { now: call.now, traceparent: traceparent.as_deref(), new_id: &new_id };
    let mut deleted = 0;
    loop {
        let mut tx = store::begin(&app.db).await?;
        call.check_id(&mut tx, Resource::Forms, form_id).await?;
        let erased = erase_submissions(&mut tx, call.account_id, form_id, email, BATCH, &writer).await?;
        let Erased { deleted: now_deleted, is_all, signals } =
            erased.ok_or_else(|| Problem::not_found("form"))?;
        app.commit_and_send(tx, signals).await?;
        deleted += now_deleted;
        if is_all {
            return Ok(call.reply(Forgotten { deleted }));
        }
    }
}
