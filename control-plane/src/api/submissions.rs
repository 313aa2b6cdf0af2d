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
use web::{Listed, Path, Problem, Query, Reply};

use super::sought::SubmissionsQuery;
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
    /// What was handed in with it; each can be fetched at `/api/forms/{id}/files/{objectId}`.
    files: Vec<FileView>,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct FileView {
    /// The field's answer.
    object_id: Uuid,
    /// The field it answers.
    field: String,
    filename: String,
    content_type: String,
    size_bytes: i64,
}

impl SubmissionView {
    /// As their form's owner sees them, with their files.
    ///
    /// # Errors
    /// The database's.
    pub(super) async fn list(
        conn: &mut store::Conn,
        account_id: Uuid,
        submissions: Vec<Submission>,
    ) -> Result<Vec<Self>, store::Error> {
        let ids: Vec<Uuid> = submissions.iter().map(|submission| submission.id).collect();
        let mut views: Vec<Self> = submissions.into_iter().map(Self::bare).collect();
        for file in store::form_files::list_files(conn, account_id, &ids).await? {
            let view = views.iter_mut().find(|view| view.id == file.submission_id);
            view.into_iter().for_each(|view| view.files.push(FileView::new(&file)));
        }
        Ok(views)
    }

    /// One of them.
    ///
    /// # Errors
    /// The database's.
    pub(super) async fn find(
        conn: &mut store::Conn,
        account_id: Uuid,
        submission: Submission,
    ) -> Result<Self, store::Error> {
        let files = store::form_files::list_files(conn, account_id, &[submission.id]).await?;
        Ok(Self { files: files.iter().map(FileView::new).collect(), ..Self::bare(submission) })
    }

    fn bare(submission: Submission) -> Self {
        Self {
            id: submission.id,
            form_id: submission.form_id,
            external_id: submission.external_id,
            payload: submission.payload,
            status: submission.status,
            spam_reasons: submission.spam_reasons,
            entry_note: submission.entry_note,
            files: Vec::new(),
            created_at: submission.created_at,
            updated_at: submission.updated_at,
        }
    }
}

impl FileView {
    fn new(file: &store::form_files::FormFile) -> Self {
        Self {
            object_id: file.id,
            field: file.field.clone(),
            filename: file.filename.clone(),
            content_type: file.content_type.clone(),
            size_bytes: file.size_bytes,
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
    Query(query): Query<SubmissionsQuery>,
) -> Result<Reply<Submissions>, Problem> {
    let (sought, limit) = query.read()?;
    let mut tx = store::begin(&app.db).await?;
    call.check_id(&mut tx, Resource::Forms, form_id).await?;
    let mut rows = store::submissions::list_submissions(&mut tx, call.account_id, form_id, &sought).await?;
    let listed = Listed::cut(&mut rows, limit, |row| Cursor { created_at: row.created_at, id: row.id });
    let submissions = SubmissionView::list(&mut tx, call.account_id, rows).await?;
    Ok(call.reply(Submissions { submissions, listed: listed.clone() }).part(listed))
}
