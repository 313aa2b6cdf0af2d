//! Submissions in responses.

use chrono::{DateTime, Utc};
use domain::answers::Answers;
use domain::fields::Field;
use domain::in_order;
use domain::submissions::Status;
use schemars::JsonSchema;
use serde::Serialize;
use store::submissions::{StatusCounts, Submission};
use uuid::Uuid;
use web::PageInfo;

use super::effects::SubmissionEffectsView;

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SubmissionView {
    id: Uuid,
    /// The form's id.
    form_id: Uuid,
    /// Your own id for it, if it was written with one.
    external_id: Option<String>,
    /// Answers by field name, in the order of the form's fields.
    payload: Answers,
    /// Answers to fields that the form did not have, if it stores them (`unknownFields`).
    #[serde(skip_serializing_if = "Answers::is_empty")]
    #[schemars(default)]
    extra: Answers,
    /// `received`, `spam` or `archived`.
    status: Status,
    /// Why it was classified as spam.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    spam_reasons: Vec<String>,
    /// Why no entry was created on the form's page: `page_gone`, `page_full`, `no_template` or `too_large`.
    #[serde(skip_serializing_if = "Option::is_none")]
    entry_note: Option<String>,
    /// Uploaded files; download them from `/api/forms/{id}/files/{objectId}`.
    files: Vec<SubmissionFileView>,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SubmissionResponse {
    /// The submission, after a change as it is then.
    pub(super) data: SubmissionView,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SubmissionDetailResponse {
    /// The submission.
    pub(super) data: SubmissionView,
    /// What it caused.
    pub(super) effects: SubmissionEffectsView,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SubmissionListResponse {
    /// The submissions on this page of the list.
    pub(super) submissions: Vec<SubmissionView>,
    /// The form's submissions by status, whatever the filters; null on pages after the first.
    pub(super) counts: Option<SubmissionCountsView>,
    #[serde(flatten)]
    pub(super) page: PageInfo,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct SubmissionCountsView {
    /// Number of received submissions, without archived ones.
    received: i64,
    /// Number of submissions classified as spam.
    spam: i64,
    /// Number of archived submissions.
    archived: i64,
}

impl From<StatusCounts> for SubmissionCountsView {
    fn from(StatusCounts { received, spam, archived }: StatusCounts) -> Self {
        Self { received, spam, archived }
    }
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SubmissionFileView {
    /// Id of the file, which is also the field's answer.
    object_id: Uuid,
    /// Name of the field.
    field: String,
    /// File name as uploaded.
    filename: String,
    /// Media type of the file.
    content_type: String,
    /// Size in bytes.
    size_bytes: i64,
}

impl SubmissionView {
    /// Submissions of a form with these fields as the owner sees them, with their files.
    pub(super) async fn list(
        conn: &mut store::Conn,
        account_id: Uuid,
        fields: &[Field],
        submissions: Vec<Submission>,
    ) -> Result<Vec<Self>, store::Error> {
        let ids: Vec<Uuid> = submissions.iter().map(|submission| submission.id).collect();
        let mut views: Vec<Self> = submissions.into_iter().map(|one| Self::bare(fields, one)).collect();
        for file in store::form_files::list_files(conn, account_id, &ids).await? {
            let view = views.iter_mut().find(|view| view.id == file.submission_id);
            view.into_iter().for_each(|view| view.files.push(SubmissionFileView::new(&file)));
        }
        Ok(views)
    }

    /// One submission of a form with these fields as the owner sees it, with its files.
    pub(super) async fn find(
        conn: &mut store::Conn,
        account_id: Uuid,
        fields: &[Field],
        submission: Submission,
    ) -> Result<Self, store::Error> {
        let files = store::form_files::list_files(conn, account_id, &[submission.id]).await?;
        Ok(Self {
            files: files.iter().map(SubmissionFileView::new).collect(),
            ..Self::bare(fields, submission)
        })
    }

    fn bare(fields: &[Field], submission: Submission) -> Self {
        Self {
            id: submission.id,
            form_id: submission.form_id,
            external_id: submission.external_id,
            payload: in_order(submission.payload, fields.iter().map(|field| field.name.as_str())),
            extra: submission.extra,
            status: submission.status,
            spam_reasons: submission.spam_reasons,
            entry_note: submission.entry_note,
            files: Vec::new(),
            created_at: submission.created_at,
            updated_at: submission.updated_at,
        }
    }
}

impl SubmissionFileView {
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
