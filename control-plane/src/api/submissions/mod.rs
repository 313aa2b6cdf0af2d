//! Submissions: visitors' answers to forms. The edge accepts them; owners read, write and erase them here.

mod effects;
mod erasure;
mod export;
mod files;
mod filters;
mod one;
mod results;
mod views;
mod writes;

use axum::extract::State;
use domain::scopes::Resource;
use store::submissions::count_by_status;
use uuid::Uuid;
use web::{PageInfo, Path, Problem, Query, Reply};

use self::filters::SubmissionsQuery;
use self::one::{delete_one, read};
use self::results::results;
use self::views::{SubmissionCountsView, SubmissionListResponse, SubmissionView};
use self::writes::{mark, update, upsert};
use crate::App;
use crate::call::{Call, scope};

pub(super) fn resource() -> web::Resource<App> {
    web::Resource::new("submissions")
        .post("/api/forms/{id}/submissions/{subId}/status", mark, "Set a submission's status")
        .get(
            "/api/forms/{id}/submissions/results",
            results,
            "Get a form's results with statistics, public or not",
        )
        .get("/api/forms/{id}/submissions/{subId}", read, "Get a submission")
        .delete("/api/forms/{id}/submissions/{subId}", delete_one, "Delete a submission permanently")
        .extension()
        .get("/api/forms/{id}/submissions", list, "List a form's submissions, newest first")
        .put("/api/forms/{id}/submissions/upsert", upsert, "Create or update a submission by your own id")
        .patch("/api/forms/{id}/submissions/{subId}", update, "Update some answers of a submission")
        .get("/api/forms/{id}/export", export::export, "Export a form's submissions as CSV")
        .delete("/api/forms/{id}/submissions", erasure::delete, "Erase all submissions of an e-mail address")
}

async fn list(
    call: Call<scope::SubmissionsRead>,
    State(app): State<App>,
    Path(form_id): Path<Uuid>,
    Query(query): Query<SubmissionsQuery>,
) -> Result<Reply<SubmissionListResponse>, Problem> {
    let sought = query.read()?;
    let mut tx = store::begin(&app.db).await?;
    call.check_id(&mut tx, Resource::Forms, form_id).await?;
    let found = store::submissions::list_submissions(&mut tx, call.account_id, form_id, &sought).await?;
    let page = PageInfo::of(&found.rows, found.has_more);
    let form = store::forms::find_form(&mut tx, call.account_id, form_id).await?;
    let fields = form.map(|form| form.fields).unwrap_or_default();
    let submissions = SubmissionView::list(&mut tx, call.account_id, &fields, found.rows).await?;
    let counts = match sought.after {
        None => Some(count_by_status(&mut tx, call.account_id, form_id).await?),
        Some(_) => None,
    };
    let counts = counts.map(SubmissionCountsView::from);
    let reply = call.reply(SubmissionListResponse { submissions, counts, page: page.clone() });
    Ok(reply.linked(&page))
}
