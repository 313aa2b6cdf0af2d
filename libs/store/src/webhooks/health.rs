//! What deliveries show of a webhook: that it fails, that nobody is there, that its chat has moved.
//!
//! A webhook that works is never written to by its deliveries: they would all wait for one row.

use chrono::{DateTime, Utc};
use sqlx::query;
use uuid::Uuid;

use crate::mails::Kind;
use crate::{Conn, Error};

/// Notes that deliveries of a webhook fail since `at`, unless they have failed for longer.
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

/// Notes that a webhook works.
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

/// Switches a webhook off for a reason its owner is shown: `gone` or `failing`; a mail to them is due from then on. Gives whether it was on, and still is
/// what the attempt saw that shows the reason: of the same address, and failing since the same time.
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

/// Notes where a Telegram group is from now on, unless its owner has chosen another since.
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
