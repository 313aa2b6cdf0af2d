//! Submissions: what visitors answered, counted in the same transaction.

use chrono::{DateTime, Utc};
use domain::Cursor;
use domain::answers::Answers;
use domain::forms::{Shut, shut};
use serde_json::Value;
use sqlx::types::Json;
use sqlx::{query, query_as, query_scalar};
use uuid::Uuid;

use crate::{Conn, Error};

/// A submission about to be stored.
#[derive(Debug)]
pub struct NewSubmission {
    /// Its id.
    pub id: Uuid,
    /// The form it answers.
    pub form_id: Uuid,
    /// The answers the form keeps.
    pub payload: Answers,
    /// Now.
    pub created_at: DateTime<Utc>,
}

/// What became of a submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// It is stored and counted.
    Stored,
    /// The form takes no more.
    Refused(Shut),
    /// There is no such form (any more).
    NoForm,
}

/// A submission as its form's owner sees it.
#[derive(Debug, Clone)]
pub struct Submission {
    /// Its id.
    pub id: Uuid,
    /// The form it answers.
    pub form_id: Uuid,
    /// The answers.
    pub payload: Value,
    /// `received`, `spam` or `archived`.
    pub status: String,
    /// When it came.
    pub created_at: DateTime<Utc>,
    /// When it was last edited.
    pub updated_at: DateTime<Utc>,
}

/// Stores a submission if its form still takes one: the count and the check are one statement, so no
/// number of submissions at once passes a limit. `plan_limit` is -1 for unlimited.
///
/// # Errors
/// The database's.
pub async fn insert_submission(
    conn: &mut Conn,
    account_id: Uuid,
    submission: &NewSubmission,
    plan_limit: i64,
) -> Result<Taken, Error> {
    let counted = query_scalar!(
        "update forms set submission_count = submission_count + 1
         where account_id = $1 and id = $2 and (closes_at is null or closes_at > $3)
           and (max_submissions is null or submission_count < max_submissions)
           and ($4::bigint = -1 or submission_count < $4) returning id",
        account_id,
        submission.form_id,
        submission.created_at,
        plan_limit,
    )
    .fetch_optional(&mut *conn)
    .await?;
    if counted.is_none() {
        return why_not(conn, account_id, submission, plan_limit).await;
    }
    query!(
        "insert into submissions (id, account_id, form_id, payload, created_at, updated_at)
         values ($1, $2, $3, $4, $5, $5)",
        submission.id,
        account_id,
        submission.form_id,
        Json(&submission.payload) as _,
        submission.created_at,
    )
    .execute(conn)
    .await?;
    Ok(Taken::Stored)
}

async fn why_not(
    conn: &mut Conn,
    account_id: Uuid,
    submission: &NewSubmission,
    plan_limit: i64,
) -> Result<Taken, Error> {
    let form = query!(
        "select closes_at, max_submissions, submission_count from forms where account_id = $1 and id = $2",
        account_id,
        submission.form_id,
    )
    .fetch_optional(conn)
    .await?;
    let Some(form) = form else { return Ok(Taken::NoForm) };
    let why =
        shut(submission.created_at, form.closes_at, form.submission_count, form.max_submissions, plan_limit);
    // Reopened between the two statements: the visitor may simply try again.
    Ok(Taken::Refused(why.unwrap_or(Shut::Full)))
}

/// Submissions of a form of the account, newest first.
///
/// # Errors
/// The database's.
pub async fn list_submissions(
    conn: &mut Conn,
    account_id: Uuid,
    form_id: Uuid,
    after: Option<Cursor>,
    limit: i64,
) -> Result<Vec<Submission>, Error> {
    let submissions = query_as!(
        Submission,
        "select id, form_id, payload, status, created_at, updated_at from submissions
         where account_id = $1 and form_id = $2 and ($3::timestamptz is null or (created_at, id) < ($3, $4))
         order by created_at desc, id desc limit $5",
        account_id,
        form_id,
        after.map(|after| after.created_at),
        after.map(|after| after.id).unwrap_or_default(),
        limit,
    )
    .fetch_all(conn)
    .await?;
    Ok(submissions)
}
