//! Mails to forms' owners, one for each submission: what is still to be sent, and when.

use chrono::{DateTime, Utc};
use domain::answers::Answers;
use domain::fields::Field;
use sqlx::types::Json;
use sqlx::{query, query_scalar};
use uuid::Uuid;

use crate::{Conn, Error};

/// What an owner is told.
#[derive(Debug, Clone)]
pub struct Notification {
    /// Which attempt this is; the first is 1.
    pub attempt: i32,
    /// Who is told; nobody, if it is spam by now, the form wants no mails any more, or they have not agreed to any.
    pub to: Option<String>,
    /// Where they can put an end to it, sealed; an account's owner has the form for that.
    pub sealed_link: Option<Vec<u8>>,
    /// What the owner calls the form.
    pub form_name: String,
    /// What it asks.
    pub fields: Vec<Field>,
    /// What was answered.
    pub payload: Answers,
    /// When.
    pub submitted_at: DateTime<Utc>,
}

/// Orders that the owner be mailed of a submission from `now` on.
///
/// # Errors
/// The database's.
pub async fn insert_notification(
    conn: &mut Conn,
    account_id: Uuid,
    submission_id: Uuid,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    query!(
        "insert into notifications (submission_id, account_id, due_at) values ($1, $2, $3)
         on conflict (submission_id) do nothing",
        submission_id,
        account_id,
        now,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Submissions whose mail is due, up to `limit`.
///
/// # Errors
/// The database's.
pub async fn list_due(conn: &mut Conn, now: DateTime<Utc>, limit: i64) -> Result<Vec<Uuid>, Error> {
    let due = query_scalar!(
        "select submission_id from notifications where due_at <= $1 order by due_at limit $2",
        now,
        limit,
    )
    .fetch_all(conn)
    .await?;
    Ok(due)
}

/// Takes a mail that is due, and puts the next attempt off until `again_at`: should this one end without a word, it is
/// made again. None if it is not due any more.
///
/// # Errors
/// The database's.
pub async fn lease(
    conn: &mut Conn,
    submission_id: Uuid,
    now: DateTime<Utc>,
    again_at: DateTime<Utc>,
) -> Result<Option<Notification>, Error> {
    let row = query!(
        r#"with leased as (
               update notifications set due_at = $3, attempts = attempts + 1
               where submission_id = $1 and due_at <= $2 returning submission_id, attempts
           )
           select l.attempts, f.name, f.fields as "fields: Json<Vec<Field>>",
                  s.payload as "payload: Json<Answers>", s.created_at, r.sealed_link as "sealed_link?",
                  case when s.status <> 'spam' and (r.has_agreed or own.email is not null)
                       then f.notify_email end as "to?"
           from leased l join submissions s on s.id = l.submission_id join forms f on f.id = s.form_id
           left join mail_recipients r
               on r.account_id = f.account_id and r.address = lower(f.notify_email) and r.has_agreed
           left join (select a.account_id, lower(i.email) as email
                      from identity_accounts a join identities i on i.id = a.identity_id
                      where i.email_verified) own
               on own.account_id = f.account_id and own.email = lower(f.notify_email)"#,
        submission_id,
        now,
        again_at,
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.map(|row| Notification {
        attempt: row.attempts,
        to: row.to,
        sealed_link: row.sealed_link,
        form_name: row.name,
        fields: row.fields.0,
        payload: row.payload.0,
        submitted_at: row.created_at,
    }))
}

/// Nobody is to be mailed of a submission any more.
///
/// # Errors
/// The database's.
pub async fn delete_notification(
    conn: &mut Conn,
    account_id: Uuid,
    submission_id: Uuid,
) -> Result<(), Error> {
    query!(
        "delete from notifications where account_id = $1 and submission_id = $2",
        account_id,
        submission_id,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Ends an attempt: the next one is at `due_at`; none if it was mailed, or never will be. An attempt that was overtaken
/// by a later one decides nothing.
///
/// # Errors
/// The database's.
pub async fn finish(
    conn: &mut Conn,
    submission_id: Uuid,
    attempt: i32,
    due_at: Option<DateTime<Utc>>,
) -> Result<(), Error> {
    let of_attempt = match due_at {
        Some(due_at) => query!(
            "update notifications set due_at = $3 where submission_id = $1 and attempts = $2",
            submission_id,
            attempt,
            due_at,
        ),
        None => query!(
            "delete from notifications where submission_id = $1 and attempts = $2",
            submission_id,
            attempt,
        ),
    };
    of_attempt.execute(conn).await?;
    Ok(())
}

/// Forgets up to `limit` mails that were due before `before` and that nobody sends; gives how many. Fewer than `limit`
/// means that none are left.
///
/// # Errors
/// The database's.
pub async fn delete_unsent(conn: &mut Conn, before: DateTime<Utc>, limit: i64) -> Result<u64, Error> {
    let deleted = query!(
        "delete from notifications where submission_id in (
           select submission_id from notifications where due_at < $1 order by due_at limit $2
           for update skip locked)",
        before,
        limit,
    )
    .execute(conn)
    .await?;
    Ok(deleted.rows_affected())
}
