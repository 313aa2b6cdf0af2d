//! Requests for help from the operator, stored and mailed.

use chrono::{DateTime, Utc};
use sqlx::{query, query_as, query_scalar};
use uuid::Uuid;

use crate::mails::{Kind, insert_mail};
use crate::{Conn, Error, usage};

/// A help request to store.
#[derive(Debug)]
pub struct NewHelpRequest {
    pub id: Uuid,
    pub category: &'static str,
    pub subject: String,
    pub message: String,
    /// The address for the reply.
    pub email: Option<String>,
    /// The page it is about.
    pub url: Option<String>,
    pub severity: Option<&'static str>,
    /// Whether the operator gets a mail about it.
    pub mailed: bool,
    pub created_at: DateTime<Utc>,
}

/// A help request to mail.
#[derive(Debug)]
pub struct HelpRequest {
    pub category: String,
    pub subject: String,
    pub message: String,
    /// The address for the reply.
    pub email: Option<String>,
    /// The page it is about.
    pub url: Option<String>,
    pub severity: Option<String>,
    pub created_at: DateTime<Utc>,
}

/// Returns how many help requests of the account since `since` were mailed. Locks the account's usage until the end of
/// the transaction, so that concurrent requests are counted one after the other.
pub async fn count_mailed(conn: &mut Conn, account_id: Uuid, since: DateTime<Utc>) -> Result<i64, Error> {
    usage::lock(conn, account_id).await?;
    let count = query_scalar!(
        r#"select count(*) as "count!" from help_requests where account_id = $1 and created_at > $2 and mailed"#,
        account_id,
        since,
    )
    .fetch_one(conn)
    .await?;
    Ok(count)
}

/// Inserts a help request, and the mail about it if `help.mailed`.
pub async fn insert_help_request(
    conn: &mut Conn,
    account_id: Uuid,
    help: &NewHelpRequest,
) -> Result<(), Error> {
    query!(
        "insert into help_requests (id, account_id, category, subject, message, email, url, severity, created_at,
                                    mailed)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
        help.id,
        account_id,
        help.category,
        help.subject,
        help.message,
        help.email,
        help.url,
        help.severity,
        help.created_at,
        help.mailed,
    )
    .execute(&mut *conn)
    .await?;
    if help.mailed {
        insert_mail(conn, account_id, Kind::Help, help.id, help.created_at).await?;
    }
    Ok(())
}

/// Returns a help request of the account.
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
