//! What owners are mailed when a webhook of theirs was switched off by us.

use chrono::{DateTime, Utc};
use sqlx::query_as;
use uuid::Uuid;

use crate::{Conn, Error};

/// What an owner is told.
#[derive(Debug, Clone)]
pub struct Deactivation {
    /// Who is told: the account's owner, by an address that is known to be theirs.
    pub to: String,
    /// The owner's own note on the webhook.
    pub description: Option<String>,
    /// Why it was switched off: `gone` or `failing`.
    pub reason: String,
    /// When.
    pub deactivated_at: DateTime<Utc>,
    /// Since when nothing had been delivered although it was tried.
    pub failing_since: Option<DateTime<Utc>>,
}

/// What is to be told of a webhook that was switched off. None if it is on again or gone, or nobody can be told: nobody
/// owns a trial.
pub async fn find_deactivation(
    conn: &mut Conn,
    account_id: Uuid,
    id: Uuid,
) -> Result<Option<Deactivation>, Error> {
    let off = query_as!(
        Deactivation,
        r#"select i.email as "to!", w.description, w.deactivated_reason as "reason!",
                  w.deactivated_at as "deactivated_at!", w.failing_since
           from webhooks w join identity_accounts own on own.account_id = w.account_id
           join identities i on i.id = own.identity_id
           where w.account_id = $1 and w.id = $2 and w.deactivated_at is not null and w.deactivated_reason is not null
             and i.email_verified and i.email is not null"#,
        account_id,
        id,
    )
    .fetch_optional(conn)
    .await?;
    Ok(off)
}
