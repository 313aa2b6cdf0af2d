//! What a submission caused: its page entry, its mail and its automation runs. Its deliveries are in [`crate::deliveries`].

use chrono::{DateTime, Utc};
use sqlx::query_as;
use uuid::Uuid;

use crate::{Conn, Error};

/// The entry that was created from a submission.
#[derive(Debug, Clone)]
pub struct SubmissionEntry {
    pub id: Uuid,
    pub page_id: Uuid,
    /// The folder of an archived entry's page when it was deleted.
    pub folder_id: Option<Uuid>,
    /// Whether its page was deleted.
    pub is_archived: bool,
    pub created_at: DateTime<Utc>,
}

/// The mail about a submission to its form's owner.
#[derive(Debug, Clone)]
pub struct SubmissionMail {
    /// `queued`, `sent`, `failed` or `skipped`.
    pub status: String,
    pub attempts: i32,
    /// Of a queued mail.
    pub next_attempt_at: Option<DateTime<Utc>>,
    /// Of one that ended.
    pub finished_at: Option<DateTime<Utc>>,
}

/// A run of an automation that a submission started, or a replay with its answers.
#[derive(Debug, Clone)]
pub struct SubmissionRun {
    pub id: Uuid,
    pub automation_id: Uuid,
    pub automation_name: String,
    pub status: String,
    pub is_replay: bool,
    pub created_at: DateTime<Utc>,
    pub started_at: Option<DateTime<Utc>>,
    pub finished_at: Option<DateTime<Utc>>,
}

/// Returns the entry of a submission: the one of its page, or else an archived one.
pub async fn find_entry(
    conn: &mut Conn,
    account_id: Uuid,
    submission_id: Uuid,
) -> Result<Option<SubmissionEntry>, Error> {
    let entry = query_as!(
        SubmissionEntry,
        r#"select id as "id!", page_id as "page_id!", folder_id, is_archived as "is_archived!",
                  created_at as "created_at!"
           from (
               select id, page_id, null::uuid as folder_id, false as is_archived, created_at from page_entries
               where account_id = $1 and submission_id = $2
               union all
               select e.id, a.page_id, a.folder_id, true, e.created_at
               from archived_entries e join entry_archives a on a.id = e.archive_id
               where a.account_id = $1 and e.submission_id = $2
           ) as entries
           order by is_archived, created_at limit 1"#,
        account_id,
        submission_id,
    );
    Ok(entry.fetch_optional(conn).await?)
}

/// Returns the mail about a submission. `None` if its form had no notifications.
pub async fn find_mail(
    conn: &mut Conn,
    account_id: Uuid,
    submission_id: Uuid,
) -> Result<Option<SubmissionMail>, Error> {
    let mail = query_as!(
        SubmissionMail,
        r#"select 'queued' as "status!", attempts as "attempts!", due_at as next_attempt_at,
                  null::timestamptz as finished_at
           from mails where account_id = $1 and kind = 'submission' and about = $2
           union all
           select result, attempts, null::timestamptz, finished_at from submission_mails
           where account_id = $1 and submission_id = $2
           limit 1"#,
        account_id,
        submission_id,
    );
    Ok(mail.fetch_optional(conn).await?)
}

/// Returns up to `limit` runs of a submission, oldest first, with those that have not begun.
pub async fn list_runs(
    conn: &mut Conn,
    account_id: Uuid,
    submission_id: Uuid,
    limit: i64,
) -> Result<Vec<SubmissionRun>, Error> {
    let runs = query_as!(
        SubmissionRun,
        r#"select r.id as "id!", r.automation_id as "automation_id!", a.name as automation_name, r.status as "status!",
                  r.submission_id is null as "is_replay!", r.created_at as "created_at!", r.started_at, r.finished_at
           from (
               select * from automation_runs where submission_id = $2
               union all
               select * from automation_runs where source_submission_id = $2 and submission_id is null
           ) as r join automations a on a.id = r.automation_id
           where r.account_id = $1
           order by r.created_at, r.id limit $3"#,
        account_id,
        submission_id,
        limit,
    );
    Ok(runs.fetch_all(conn).await?)
}
