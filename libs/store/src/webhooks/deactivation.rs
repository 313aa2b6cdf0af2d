//! The mail to the owner of a webhook that was deactivated automatically.

use chrono::{DateTime, Utc};
use sqlx::query_as;
use uuid::Uuid;

use crate::{Conn, Error};

/// The content of the mail.
#[derive(Debug, Clone)]
pub struct Deactivation {
    /// The owner's verified address.
    pub to: String,
    /// The owner's note on the webhook.
    pub description: Option<String>,
    /// `gone` or `failing`.
    pub reason: String,
    pub deactivated_at: DateTime<Utc>,
    /// When its deliveries began to fail.
    pub failing_since: Option<DateTime<Utc>>,
}

/// Returns the content of the mail. `None` if the webhook is active again or deleted, or the account is a trial, which
/// has no owner.
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
