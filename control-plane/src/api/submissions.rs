//! Submissions: what visitors answered. Taking them is the edge's work.

use axum::extract::State;
use chrono::{DateTime, Utc};
use domain::Cursor;
use domain::answers::Answers;
use domain::scopes::Resource;
use domain::submissions::Status;
use schemars::JsonSchema;
use serde::Serialize;
use store::submissions::Submission;
use uuid::Uuid;
use web::{Listed, Paging, Path, Problem, Query, Reply};

use super::submission_edits::{mark, update, upsert};
use crate::App;
use crate::call::{Call, scope};

/// The endpoints.
pub(super) fn resource() -> web::Resource<App> {
    web::Resource::new("submissions")
        .post(
            "/api/forms/{id}/submissions/{subId}/status",
            mark,
            "Tell spam from what is none, or put a submission aside",
        )
        .extension()
        .get("/api/forms/{id}/submissions", list, "List a form's submissions, newest first")
        .put(
            "/api/forms/{id}/submissions/upsert",
            upsert,
            "Write a submission by a name of your own, whether it is there or not",
        )
        .patch("/api/forms/{id}/submissions/{subId}", update, "Change some answers of a submission")
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SubmissionView {
    id: Uuid,
    form_id: Uuid,
    /// Your own name for it, if it was written by one.
    external_id: Option<String>,
    /// The answers, by field name.
    payload: Answers,
    status: Status,
    /// Why it was held to be spam.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    spam_reasons: Vec<String>,
    /// Why no entry of the form's page was made of it: `page_gone`, `page_full`, `no_template` or `too_large`.
    #[serde(skip_serializing_if = "Option::is_none")]
    entry_note: Option<String>,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

impl SubmissionView {
    pub(super) fn new(submission: Submission) -> Self {
        Self {
            id: submission.id,
            form_id: submission.form_id,
            external_id: submission.external_id,
            payload: submission.payload,
            status: submission.status,
            spam_reasons: submission.spam_reasons,
            entry_note: submission.entry_note,
            created_at: submission.created_at,
            updated_at: submission.updated_at,
        }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
struct Submissions {
    submissions: Vec<SubmissionView>,
    #[serde(flatten)]
    listed: Listed,
}

async fn list(
    call: Call<scope::SubmissionsRead>,
    State(app): State<App>,
    Path(form_id): Path<Uuid>,
    Query(paging): Query<Paging>,
) -> Result<Reply<Submissions>, Problem> {
    let (limit, after) = paging.read()?;
    let mut conn = store::acquire(&app.db).await?;
    call.check_id(&mut conn, Resource::Forms, form_id).await?;
    let mut rows =
        store::submissions::list_submissions(&mut conn, call.account_id, form_id, after, limit + 1).await?;
    let listed = Listed::cut(&mut rows, limit, |row| Cursor { created_at: row.created_at, id: row.id });
    Ok(call
        .reply(Submissions {
            submissions: rows.into_iter().map(SubmissionView::new).collect(),
            listed: listed.clone(),
        })
        .part(listed))
}
