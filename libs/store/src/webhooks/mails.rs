//! Mails to owners whose webhook was switched off by us, one each time: what is still to be sent, and when.

use chrono::{DateTime, Utc};
use sqlx::{query, query_as, query_scalar};
use uuid::Uuid;

use crate::{Conn, Error};

/// What an owner is told.
#[derive(Debug, Clone)]
pub struct WebhookMail {
    /// Which attempt this is; the first is 1.
    pub attempt: i32,
    /// Who is told: the account's owner, by an address that is known to be theirs. Nobody owns a trial.
    pub to: Option<String>,
    /// The owner's own note on the webhook.
    pub description: Option<String>,
    /// Why it was switched off: `gone` or `failing`.
    pub reason: String,
    /// When.
    pub deactivated_at: DateTime<Utc>,
    /// Since when nothing had been delivered although it was tried.
    pub failing_since: Option<DateTime<Utc>>,
}

/// Webhooks whose mail is due, up to `limit`.
///
/// # Errors
/// The database's.
pub async fn list_due_mails(conn: &mut Conn, now: DateTime<Utc>, limit: i64) -> Result<Vec<Uuid>, Error> {
    let due = query_scalar!(
        "select id from webhooks where mail_due_at <= $1 order by mail_due_at limit $2",
        now,
        limit
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
pub async fn lease_mail(
    conn: &mut Conn,
    webhook_id: Uuid,
    now: DateTime<Utc>,
    again_at: DateTime<Utc>,
) -> Result<Option<WebhookMail>, Error> {
    let mail = query_as!(
        WebhookMail,
        r#"update webhooks w set mail_due_at = $3, mail_attempts = mail_attempts + 1
           where id = $1 and mail_due_at <= $2 and deactivated_at is not null and deactivated_reason is not null
           returning mail_attempts as attempt, description, deactivated_reason as "reason!",
                     deactivated_at as "deactivated_at!", failing_since,
                     (select i.email from identity_accounts own join identities i on i.id = own.identity_id
                      where own.account_id = w.account_id and i.email_verified) as "to""#,
        webhook_id,
        now,
        again_at,
    )
    .fetch_optional(conn)
    .await?;
    Ok(mail)
}

/// Ends an attempt: the next one is at `due_at`; none if it was mailed, or never will be. An attempt that was overtaken
/// by a later one decides nothing.
///
/// # Errors
/// The database's.
pub async fn finish_mail(
    conn: &mut Conn,
    webhook_id: Uuid,
    attempt: i32,
    due_at: Option<DateTime<Utc>>,
) -> Result<(), Error> {
    query!(
        "update webhooks set mail_due_at = $3 where id = $1 and mail_attempts = $2 and mail_due_at is not null",
        webhook_id,
        attempt,
        due_at,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Forgets mails that were due before `before` and that nobody sends.
///
/// # Errors
/// The database's.
pub async fn forget_unsent_mails(conn: &mut Conn, before: DateTime<Utc>) -> Result<(), Error> {
    query!("update webhooks set mail_due_at = null where mail_due_at < $1", before).execute(conn).await?;
    Ok(())
}
