//! Words to the operator, kept and mailed.

use chrono::{DateTime, Utc};
use sqlx::{query, query_as};
use uuid::Uuid;

use crate::mails::{Kind, insert_mail};
use crate::{Conn, Error};

/// A request for help about to be stored.
#[derive(Debug)]
pub struct NewHelpRequest {
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

/// A request for help, as it is mailed.
#[derive(Debug)]
pub struct HelpRequest {
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
}

/// Stores a request for help, which is to be mailed at once, in the caller's transaction.
pub async fn insert_help_request(
    conn: &mut Conn,
    account_id: Uuid,
    help: &NewHelpRequest,
) -> Result<(), Error> {
    query!(
        "insert into help_requests (id, account_id, category, subject, message, email, url, severity, created_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
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
    .execute(&mut *conn)
    .await?;
    insert_mail(conn, account_id, Kind::Help, help.id, help.created_at).await
}

/// A request for help of the account.
pub async fn find_help_request(
    conn: &mut Conn,
    account_id: Uuid,
    id: Uuid,
) -> Result<Option<HelpRequest>, Error> {
    let help = query_as!(
        HelpRequest,
        "select category, subject, message, email, url, severity, created_at from help_requests
         where account_id = $1 and id = $2",
        account_id,
        id,
    )
    .fetch_optional(conn)
    .await?;
    Ok(help)
}
