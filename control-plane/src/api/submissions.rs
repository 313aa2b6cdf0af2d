//! Submissions: what visitors answered. Taking them is the edge's work.

use axum::extract::State;
use chrono::{DateTime, Utc};
use domain::Cursor;
use domain::answers::Answers;
use domain::scopes::Resource;
use domain::submissions::Status;
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;
use web::{Listed, Path, Problem, Query, Reply};

use super::sought::SubmissionsQuery;
use crate::App;
use crate::call::{Call, scope};

/// The endpoints.
pub(super) fn resource() -> web::Resource<App> {
    web::Resource::new("submissions").get(
        "/api/forms/{id}/submissions",
        list,
        "List a form's submissions, newest first",
    )
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SubmissionView {
    id: Uuid,
    form_id: Uuid,
    /// The answers, by field name.
    payload: Answers,
    status: Status,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
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
    let view = |row: store::submissions::Submission| SubmissionView {
        id: row.id,
        form_id: row.form_id,
        payload: row.payload,
        status: row.status,
        created_at: row.created_at,
        updated_at: row.updated_at,
    };
    Ok(call
        .reply(Submissions { submissions: rows.into_iter().map(view).collect(), listed: listed.clone() })
        .part(listed))
}
