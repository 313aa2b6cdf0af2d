//! The health of webhooks as their deliveries show it: failing, gone, or moved to another chat.
//!
//! Successful deliveries don't write to their webhook: they would all contend for one row.

use chrono::{DateTime, Utc};
use sqlx::query;
use uuid::Uuid;

use crate::mails::Kind;
use crate::{Conn, Error};

/// Marks a webhook as failing since `at`, unless it is failing already.
pub async fn mark_failing(
    conn: &mut Conn,
    account_id: Uuid,
    id: Uuid,
    at: DateTime<Utc>,
) -> Result<(), Error> {
    query!(
        "update webhooks set failing_since = $3 where account_id = $1 and id = $2 and failing_since is null",
        account_id,
        id,
        at,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Clears the failing mark of a webhook.
pub async fn clear_failing(conn: &mut Conn, account_id: Uuid, id: Uuid) -> Result<(), Error> {
    query!(
        "update webhooks set failing_since = null
         where account_id = $1 and id = $2 and failing_since is not null",
        account_id,
        id,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Deactivates a webhook with a reason, `gone` or `failing`, and queues a mail to its owner. Returns `false` if it was
/// inactive, or if its URL or its failing time changed since the attempt that is the reason.
pub async fn deactivate(
    conn: &mut Conn,
    account_id: Uuid,
    id: Uuid,
    reason: &'static str,
    at: DateTime<Utc>,
    (sealed_url, failing_since): (&[u8], Option<DateTime<Utc>>),
) -> Result<bool, Error> {
    let deactivated = query!(
        "update webhooks set is_active = false, deactivated_reason = $3, deactivated_at = $4
         where account_id = $1 and id = $2 and is_active and sealed_url = $5
           and ($3 <> 'failing' or failing_since is not distinct from $6)",
        account_id,
        id,
        reason,
        at,
        sealed_url,
        failing_since,
    )
    .execute(&mut *conn)
    .await?;
    if deactivated.rows_affected() == 0 {
        return Ok(false);
    }
    crate::mails::insert_mail(conn, account_id, Kind::WebhookOff, id, at).await?;
    crate::deliveries::cancel_pending(conn, account_id, id, at).await?;
    Ok(true)
}

/// Updates the chat id of a Telegram group that moved, unless the owner has set another one since.
pub async fn update_chat_id(
    conn: &mut Conn,
    account_id: Uuid,
    id: Uuid,
    from: Option<&str>,
    to: &str,
) -> Result<(), Error> {
    query!(
        "update webhooks set telegram_chat_id = $4
         where account_id = $1 and id = $2 and telegram_chat_id is not distinct from $3",
        account_id,
        id,
        from,
        to,
    )
    .execute(conn)
    .await?;
    Ok(())
}
