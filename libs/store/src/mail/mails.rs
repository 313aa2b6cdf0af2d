//! The queue of mails. A mail is leased while it is sent, becomes due again after a failure, and is deleted when it is
//! sent or given up.

use chrono::{DateTime, Utc};
use sqlx::{query, query_as, query_scalar};
use uuid::Uuid;

use crate::{Conn, Error};

/// The kind of a mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// To the operator: a help request.
    Help,
    /// To a mail recipient: a request to confirm the address.
    Confirmation,
    /// To the owner of a form: a submission.
    Submission,
    /// To the owner of a webhook: it was deactivated.
    WebhookOff,
    /// To the owner of a custom domain: its DNS records are gone.
    DomainRecords,
    /// To the owner of a domain: its certificate ends soon because renewals fail.
    CertificateExpiring,
    /// To the owner of an automation: its runs fail.
    AutomationFailed,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 7] = [
        Self::Help,
        Self::Confirmation,
        Self::Submission,
        Self::WebhookOff,
        Self::DomainRecords,
        Self::CertificateExpiring,
        Self::AutomationFailed,
    ];

    /// Returns the kind as stored.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Help => "help",
            Self::Confirmation => "question",
            Self::Submission => "submission",
            Self::WebhookOff => "webhook_off",
            Self::DomainRecords => "domain_records",
            Self::CertificateExpiring => "certificate_expiring",
            Self::AutomationFailed => "automation_failed",
        }
    }
}

/// An attempt to send a mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeasedMail {
    pub account_id: Uuid,
    /// The first attempt is 1.
    pub attempt: i32,
}

/// Inserts a mail due at `due_at`, unless it is queued already.
pub async fn insert_mail(
    conn: &mut Conn,
    account_id: Uuid,
    kind: Kind,
    about: Uuid,
    due_at: DateTime<Utc>,
) -> Result<(), Error> {
    query!(
        "insert into mails (kind, about, account_id, due_at) values ($1, $2, $3, $4) on conflict do nothing",
        kind.as_str(),
        about,
        account_id,
        due_at,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Deletes a queued mail.
pub async fn delete_mail(conn: &mut Conn, account_id: Uuid, kind: Kind, about: Uuid) -> Result<(), Error> {
    query!(
        "delete from mails where account_id = $1 and kind = $2 and about = $3",
        account_id,
        kind.as_str(),
        about,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Returns the subjects of up to `limit` due mails of a kind.
pub async fn list_due(
    conn: &mut Conn,
    kind: Kind,
    now: DateTime<Utc>,
    limit: i64,
) -> Result<Vec<Uuid>, Error> {
    let due = query_scalar!(
        "select about from mails where kind = $1 and due_at <= $2 order by due_at limit $3",
        kind.as_str(),
        now,
        limit,
    )
    .fetch_all(conn)
    .await?;
    Ok(due)
}

/// Leases a due mail. If this attempt ends without a result, the next one is due at `again_at`. Returns `None` if the
/// mail is no longer due.
pub async fn lease(
    conn: &mut Conn,
    kind: Kind,
    about: Uuid,
    now: DateTime<Utc>,
    again_at: DateTime<Utc>,
) -> Result<Option<LeasedMail>, Error> {
    let leased = query_as!(
        LeasedMail,
        "update mails set due_at = $4, attempts = attempts + 1 where kind = $1 and about = $2 and due_at <= $3
         returning account_id, attempts as attempt",
        kind.as_str(),
        about,
        now,
        again_at,
    )
    .fetch_optional(conn)
    .await?;
    Ok(leased)
}

/// How a mail ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MailResult {
    Sent,
    /// It was given up.
    Failed,
    /// There is no recipient for it.
    Skipped,
}

impl MailResult {
    fn as_str(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        }
    }
}

/// Delays a mail after a failed attempt. Has no effect if a later attempt has begun.
pub async fn delay(
    conn: &mut Conn,
    kind: Kind,
    about: Uuid,
    attempt: i32,
    due_at: DateTime<Utc>,
) -> Result<(), Error> {
    query!(
        "update mails set due_at = $4 where kind = $1 and about = $2 and attempts = $3",
        kind.as_str(),
        about,
        attempt,
        due_at,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Deletes a mail after its last attempt, and logs the result of a submission's mail. Has no effect if a later attempt has
/// begun.
pub async fn finish(
    conn: &mut Conn,
    kind: Kind,
    about: Uuid,
    attempt: i32,
    result: MailResult,
    at: DateTime<Utc>,
) -> Result<(), Error> {
    // The lock keeps the submission until the log refers to it.
    query!(
        "with ended as (
             delete from mails where kind = $1 and about = $2 and attempts = $3 returning about, account_id
         ), kept as materialized (
             select s.id, e.account_id from ended e join submissions s on s.id = e.about
             where $1 = 'submission' for key share of s
         )
         insert into submission_mails (submission_id, account_id, result, attempts, finished_at)
         select id, account_id, $4, $3, $5 from kept on conflict do nothing",
        kind.as_str(),
        about,
        attempt,
        result.as_str(),
        at,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Deletes up to `limit` mails that were due before `before` and never sent, except help requests. Returns how many;
/// fewer than `limit` means that none are left.
pub async fn delete_unsent(conn: &mut Conn, before: DateTime<Utc>, limit: i64) -> Result<u64, Error> {
    let deleted = query!(
        "delete from mails where (about, kind) in (
           select about, kind from mails where kind <> 'help' and due_at < $1 order by due_at limit $2
           for update skip locked)",
        before,
        limit,
    )
    .execute(conn)
    .await?;
    Ok(deleted.rows_affected())
}
