//! Mails that are to be sent, whatever they say: one is taken and leased while it is sent, comes due again should that
//! fail, and goes when it is done or given up.

use chrono::{DateTime, Utc};
use sqlx::{query, query_as, query_scalar};
use uuid::Uuid;

use crate::{Conn, Error};

/// What a mail says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// To the operator: a request for help.
    Help,
    /// To somebody who may be mailed of submissions: whether they want that.
    Confirmation,
    /// To a form's owner: a submission.
    Submission,
    /// To a webhook's owner: it was switched off.
    WebhookOff,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Help, Self::Confirmation, Self::Submission, Self::WebhookOff];

    /// Its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Help => "help",
            Self::Confirmation => "question",
            Self::Submission => "submission",
            Self::WebhookOff => "webhook_off",
        }
    }
}

/// An attempt to send a mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeasedMail {
    /// Whose mail it is.
    pub account_id: Uuid,
    /// Which attempt this is; the first is 1.
    pub attempt: i32,
}

/// Orders a mail, from `due_at` on, unless it waits already.
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

/// Takes an order back.
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

/// What up to `limit` mails of a kind are about that are due.
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

/// Takes a mail that is due, and puts the next attempt off until `again_at`: should this one end without a word, it is
/// made again. None if it is not due any more.
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

/// Ends an attempt: the next one is at `due_at`; none if it was mailed, or never will be. An attempt that was overtaken
/// by a later one decides nothing.
pub async fn finish(
    conn: &mut Conn,
    kind: Kind,
    about: Uuid,
    attempt: i32,
    due_at: Option<DateTime<Utc>>,
) -> Result<(), Error> {
    query!(
        "with ended as (delete from mails where kind = $1 and about = $2 and attempts = $3 and $4::timestamptz is null)
         update mails set due_at = $4 where kind = $1 and about = $2 and attempts = $3 and $4 is not null",
        kind.as_str(),
        about,
        attempt,
        due_at,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Forgets up to `limit` mails that were due before `before` and that nobody sends, but for words to the operator; gives
/// how many. Fewer than `limit` means that none are left.
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
