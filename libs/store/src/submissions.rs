//! Submissions: what visitors answered, stored with all that follows from it.
//!
//! Edge and control plane take them by the same function. Every one that changes what a form counts, or what is unique
//! in it, has the form's row until its transaction ends, as have edits of the form ([`crate::forms::lock_form`]).

/// A row that has every column of a submission that its owner sees.
macro_rules! submission {
    ($row:expr) => {
        Ok(Submission {
            id: $row.id,
            form_id: $row.form_id,
            external_id: $row.external_id,
            payload: $row.payload.0,
            status: read_status(&$row.status)?,
            spam_reasons: $row.spam_reasons,
            entry_note: $row.entry_note,
            created_at: $row.created_at,
            updated_at: $row.updated_at,
        })
    };
}

mod delete;
mod effects;
mod export;
mod group_insert;
mod insert;
mod list;
mod results;
mod spam;
mod unique;
mod update;

use chrono::{DateTime, Utc};
use domain::answers::Answers;
use domain::submissions::Status;
use sqlx::types::Json;
use sqlx::{query, query_scalar};
use uuid::Uuid;

use crate::{Conn, Error};

pub use delete::{Erasure, delete_submissions_by_email};
pub use effects::WriteContext;
pub use export::{CsvChunk, csv_column_names, export_submissions};
pub use group_insert::{BatchSubmission, StoredBatch, insert_batch};
pub use insert::{NewSubmission, SubmissionOutcome, insert_submission};
pub use list::{SubmissionFilter, list_submissions};
pub use results::get_results;
pub use spam::delete_old_spam;
pub use unique::{resolve_duplicates, update_unique_digests};
pub use update::{UpdateOutcome, update_count, update_payload, update_status};

/// A submission as its form's owner sees it.
#[derive(Debug, Clone)]
pub struct Submission {
    /// Its id.
    pub id: Uuid,
    /// The form it answers.
    pub form_id: Uuid,
    /// The owner's own name for it.
    pub external_id: Option<String>,
    /// The answers.
    pub payload: Answers,
    /// What became of it.
    pub status: Status,
    /// Why it was held to be spam.
    pub spam_reasons: Vec<String>,
    /// Why no entry was made of it, where one was wanted.
    pub entry_note: Option<String>,
    /// When it came.
    pub created_at: DateTime<Utc>,
    /// When it was last edited.
    pub updated_at: DateTime<Utc>,
}

/// A submission of a form of the account.
pub async fn find_submission(
    conn: &mut Conn,
    account_id: Uuid,
    form_id: Uuid,
    id: Uuid,
) -> Result<Option<Submission>, Error> {
    let row = query!(
        r#"select id, form_id, external_id, payload as "payload: Json<Answers>", status, spam_reasons, entry_note,
                  created_at, updated_at
           from submissions where account_id = $1 and form_id = $2 and id = $3"#,
        account_id,
        form_id,
        id,
    )
    .fetch_optional(conn)
    .await?;
    row.map(|row| submission!(row)).transpose()
}

/// The id of the submission that its owner calls so.
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

fn read_status(word: &str) -> Result<Status, Error> {
    Status::from_word(word).ok_or_else(|| Error::Unreadable {
        table: "submissions",
        column: "status",
        value: word.to_owned(),
    })
}
