//! Words to the operator, kept and mailed.

use chrono::{DateTime, Utc};
use sqlx::{query, query_as, query_scalar};
use uuid::Uuid;

use crate::{Conn, Error};

/// A request for help about to be stored.
#[derive(Debug)]
pub struct NewHelp {
    /// Its id.
    pub id: Uuid,
    /// What it is about.
    pub category: &'static str,
    /// In a line.
    pub subject: String,
    /// In full.
    pub message: String,
    /// Where to answer.
    pub email: Option<String>,
    /// The page it is about.
    pub url: Option<String>,
    /// How bad it is.
    pub severity: Option<&'static str>,
    /// Now.
    pub created_at: DateTime<Utc>,
}

/// A request for help that is to be mailed.
#[derive(Debug)]
pub struct Help {
    /// Whose it is.
    pub account_id: Uuid,
    /// What it is about.
    pub category: String,
    /// In a line.
    pub subject: String,
    /// In full.
    pub message: String,
    /// Where to answer.
    pub email: Option<String>,
    /// The page it is about.
    pub url: Option<String>,
    /// How bad it is.
    pub severity: Option<String>,
    /// When it was written.
    pub created_at: DateTime<Utc>,
    /// Which attempt to mail it this is, from 1.
    pub attempt: i32,
}

/// Stores a request for help; it is to be mailed at once.
///
/// # Errors
/// The database's.
pub async fn insert_help(conn: &mut Conn, account_id: Uuid, help: &NewHelp) -> Result<(), Error> {
    query!(
        "insert into help_requests (id, account_id, category, subject, message, email, url, severity, created_at,
                                    mail_due_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9)",
        help.id,
        account_id,
        help.category,
        help.subject,
        help.message,
        help.email,
        help.url,
        help.severity,
        help.created_at,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Requests whose mail is due, up to `limit`.
///
/// # Errors
/// The database's.
pub async fn list_due(conn: &mut Conn, now: DateTime<Utc>, limit: i64) -> Result<Vec<Uuid>, Error> {
    let due = query_scalar!(
        "select id from help_requests where mail_due_at <= $1 order by mail_due_at limit $2",
        now,
        limit,
    )
    .fetch_all(conn)
    .await?;
    Ok(due)
}

/// Takes a request whose mail is due, and puts the next attempt off until `again_at`: should this one end without
/// a word, it is tried again. None if it is not due any more.
///
/// # Errors
/// The database's.
pub async fn lease_mail(
    conn: &mut Conn,
    id: Uuid,
    now: DateTime<Utc>,
    again_at: DateTime<Utc>,
) -> Result<Option<Help>, Error> {
    let help = query_as!(
        Help,
        "update help_requests set mail_due_at = $3, mail_attempts = mail_attempts + 1
         where id = $1 and mail_due_at <= $2
         returning account_id, category, subject, message, email, url, severity, created_at,
                   mail_attempts as attempt",
        id,
        now,
        again_at,
    )
    .fetch_optional(conn)
    .await?;
    Ok(help)
}

/// Ends an attempt: the next one is at `due_at`; none if it was mailed, or never will be. An attempt that was
/// overtaken by a later one decides nothing.
///
/// # Errors
/// The database's.
pub async fn finish_mail(
    conn: &mut Conn,
    id: Uuid,
    attempt: i32,
    due_at: Option<DateTime<Utc>>,
) -> Result<(), Error> {
    query!(
        "update help_requests set mail_due_at = $3 where id = $1 and mail_attempts = $2",
        id,
        attempt,
        due_at,
    )
    .execute(conn)
    .await?;
    Ok(())
}
