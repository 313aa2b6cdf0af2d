//! Reads submissions.

use chrono::{DateTime, Utc};
use domain::answers::Answers;
use domain::submissions::Status;
use sqlx::types::Json;
use sqlx::{query_as, query_scalar};
use uuid::Uuid;

use crate::{Conn, Error};

/// A submission as its form's owner sees it.
#[derive(Debug, Clone)]
pub struct Submission {
    pub id: Uuid,
    pub form_id: Uuid,
    /// The owner's id for it.
    pub external_id: Option<String>,
    pub payload: Answers,
    /// Answers to fields that the form did not have, if it stores them.
    pub extra: Answers,
    pub status: Status,
    /// Why it was taken for spam.
    pub spam_reasons: Vec<String>,
    /// Why no page entry was created, if one was configured.
    pub entry_note: Option<String>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

/// A row of `submissions` as the queries of this module select it.
pub(crate) struct SubmissionRow {
    pub(crate) id: Uuid,
    pub(crate) form_id: Uuid,
    pub(crate) external_id: Option<String>,
    pub(crate) payload: Json<Answers>,
    pub(crate) extra: Option<Json<Answers>>,
    pub(crate) status: String,
    pub(crate) spam_reasons: Vec<String>,
    pub(crate) entry_note: Option<String>,
    pub(crate) created_at: DateTime<Utc>,
    pub(crate) updated_at: DateTime<Utc>,
}

impl TryFrom<SubmissionRow> for Submission {
    type Error = Error;

    fn try_from(row: SubmissionRow) -> Result<Self, Error> {
        let status = Status::parse(&row.status).ok_or_else(|| Error::Unreadable {
            table: "submissions",
            column: "status",
            value: row.status,
        })?;
        Ok(Self {
            id: row.id,
            form_id: row.form_id,
            external_id: row.external_id,
            payload: row.payload.0,
            extra: row.extra.map(|extra| extra.0).unwrap_or_default(),
            status,
            spam_reasons: row.spam_reasons,
            entry_note: row.entry_note,
            created_at: row.created_at,
            updated_at: row.updated_at,
        })
    }
}

/// Returns a submission of a form of the account.
pub async fn find_submission(
    conn: &mut Conn,
    account_id: Uuid,
    form_id: Uuid,
    id: Uuid,
) -> Result<Option<Submission>, Error> {
    let row = query_as!(
        SubmissionRow,
        r#"select id, form_id, external_id, payload as "payload: Json<Answers>",
                  extra as "extra: Json<Answers>", status, spam_reasons, entry_note, created_at, updated_at
           from submissions where account_id = $1 and form_id = $2 and id = $3"#,
        account_id,
        form_id,
        id,
    )
    .fetch_optional(conn)
    .await?;
    row.map(Submission::try_from).transpose()
}

/// Returns the id of the submission with this external id.
pub async fn find_id_by_external_id(
    conn: &mut Conn,
    account_id: Uuid,
    form_id: Uuid,
    external_id: &str,
) -> Result<Option<Uuid>, Error> {
    let id = query_scalar!(
        "select id from submissions where account_id = $1 and form_id = $2 and external_id = $3",
        account_id,
        form_id,
        external_id,
    )
    .fetch_optional(conn)
    .await?;
    Ok(id)
}
