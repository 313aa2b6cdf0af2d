//! Right to erasure: deletes all submissions of an e-mail address, with everything derived from them.

use axum::extract::State;
use domain::FieldError;
use domain::answers::email_spellings;
use domain::scopes::Resource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::submissions::{Erasure, WriteContext, delete_submissions_by_email};
use uuid::Uuid;
use web::{Path, Problem, Query, Reply};

use crate::App;
use crate::call::{Call, scope};

/// Submissions deleted per transaction.
const BATCH: i64 = 500;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SubmissionErasureQuery {
    /// Address to match against the answers to fields of type email; case is ignored. A domain matches in both of its
    /// spellings: `bücher.example` and `xn--bcher-kva.example`.
    #[schemars(extend("format" = "email"))]
    email: String,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SubmissionErasureResponse {
    /// Number of deleted submissions.
    deleted: i64,
}

pub(super) async fn delete(
    call: Call<scope::SubmissionsDelete>,
    State(app): State<App>,
    Path(form_id): Path<Uuid>,
    Query(query): Query<SubmissionErasureQuery>,
) -> Result<Reply<SubmissionErasureResponse>, Problem> {
    call.require_fresh_sign_in(&app)?;
    let Some(spellings) = email_spellings(query.email.trim()) else {
        let error = FieldError::new("email", "email", "email must be an e-mail address");
        return Err(Problem::validation(vec![error]));
    };
    let traceparent = service::telemetry::traceparent();
    let new_id = || app.rng.uuid_v7(call.now);
    let writer =
        WriteContext { now: call.now, traceparent: traceparent.as_deref(), depth: 0, new_id: &new_id };
    let mut deleted = 0;
    loop {
        let mut tx = store::begin(&app.db).await?;
        call.check_id(&mut tx, Resource::Forms, form_id).await?;
        let erased =
            delete_submissions_by_email(&mut tx, call.account_id, form_id, &spellings, BATCH, &writer)
                .await?;
        let Erasure { deleted: now_deleted, is_all, signals } =
            erased.ok_or_else(|| Problem::not_found("form"))?;
        call.commit_and_send(&app, tx, signals).await?;
        deleted += now_deleted;
        if is_all {
            return Ok(call.reply(SubmissionErasureResponse { deleted }));
        }
    }
}
