//! Updates and deletes webhooks on behalf of their owner.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::query;
use uuid::Uuid;

use crate::mails::{Kind, delete_mail};
use crate::{Conn, DELETION_TIMEOUT, Error};

/// Changes to a webhook; `None` leaves a field unchanged.
#[derive(Debug, Default)]
pub struct WebhookChange {
    /// The new encrypted URL.
    pub sealed_url: Option<Vec<u8>>,
    pub events: Option<Vec<String>>,
    /// The inner `None` removes the description.
    pub description: Option<Option<String>>,
    /// The inner `None` removes the mapping.
    pub field_mapping: Option<Option<Value>>,
    /// Format of the messages, by the template's name.
    pub template: Option<&'static str>,
    /// The inner `None` removes the chat.
    pub telegram_chat_id: Option<Option<String>>,
    pub is_active: Option<bool>,
}

/// Locks a webhook of the account. Returns `false` if there is no such webhook.
pub async fn lock_webhook(conn: &mut Conn, account_id: Uuid, id: Uuid) -> Result<bool, Error> {
    let locked =
        query!("select id from webhooks where account_id = $1 and id = $2 for no key update", account_id, id)
            .fetch_optional(conn)
            .await?;
    Ok(locked.is_some())
}

/// Updates a webhook. A new URL or a reactivation clears its failing mark; setting `is_active` clears the reason of an
/// automatic deactivation.
pub async fn update_webhook(
    conn: &mut Conn,
    account_id: Uuid,
    id: Uuid,
    change: &WebhookChange,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    query!(
        "update webhooks set
             sealed_url = coalesce($3, sealed_url),
             events = coalesce($4, events),
             description = case when $5 then $6 else description end,
             field_mapping = case when $7 then $8 else field_mapping end,
             template = coalesce($9, template),
             telegram_chat_id = case when $10 then $11 else telegram_chat_id end,
             is_active = coalesce($12, is_active),
             failing_since = case when $3 is null and $12 is not true then failing_since end,
             deactivated_reason = case when $12::boolean is null then deactivated_reason end,
             deactivated_at = case when $12::boolean is null then deactivated_at end,
             updated_at = $13
         where account_id = $1 and id = $2",
        account_id,
        id,
        change.sealed_url,
        change.events.as_deref(),
        change.description.is_some(),
        change.description.as_ref().and_then(Option::as_ref),
        change.field_mapping.is_some(),
        change.field_mapping.as_ref().and_then(Option::as_ref),
        change.template,
        change.telegram_chat_id.is_some(),
        change.telegram_chat_id.as_ref().and_then(Option::as_ref),
        change.is_active,
        now,
    )
    .execute(&mut *conn)
    .await?;
    if change.is_active.is_some() {
        // The owner knows already.
        delete_mail(conn, account_id, Kind::WebhookOff, id).await?;
    }
    Ok(())
}

/// Replaces the signing secret with a new encrypted one. The previous secret signs as well until `previous_until`;
/// older ones are deleted.
pub async fn update_secret(
    conn: &mut Conn,
    account_id: Uuid,
    id: Uuid,
    sealed_secret: &[u8],
    previous_until: DateTime<Utc>,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    query!(
        "update webhooks set sealed_secret = $3, updated_at = $5::timestamptz,
                             sealed_previous_secret = case when $4::timestamptz > $5 then sealed_secret end,
                             previous_secret_until = case when $4 > $5 then $4 end
         where account_id = $1 and id = $2",
        account_id,
        id,
        sealed_secret,
        previous_until,
        now,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Deletes previous secrets that no longer sign, because only an attacker could use them.
pub async fn delete_expired_secrets(conn: &mut Conn, now: DateTime<Utc>) -> Result<(), Error> {
    query!(
        "update webhooks set sealed_previous_secret = null, previous_secret_until = null
         where previous_secret_until <= $1",
        now,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Deletes a webhook with its deliveries. Returns `false` if there is no such webhook.
pub async fn delete_webhook(conn: &mut Conn, account_id: Uuid, id: Uuid) -> Result<bool, Error> {
    conn.allow_long_statements(DELETION_TIMEOUT).await?;
    let deleted = query!("delete from webhooks where account_id = $1 and id = $2", account_id, id);
    Ok(deleted.execute(conn).await?.rows_affected() > 0)
}
