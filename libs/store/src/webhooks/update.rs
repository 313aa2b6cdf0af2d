//! What an owner changes of a webhook.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::query;
use uuid::Uuid;

use crate::mails::{Kind, delete_mail};
use crate::{Conn, Error};

/// What changes of a webhook; `None` leaves a part as it is.
#[derive(Debug, Default)]
pub struct WebhookChange {
    /// New address, sealed.
    pub sealed_url: Option<Vec<u8>>,
    /// What it is told of from now on.
    pub events: Option<Vec<String>>,
    /// New note, or none at all.
    pub description: Option<Option<String>>,
    /// Other names for answers, or their own.
    pub field_mapping: Option<Option<Value>>,
    /// For whom it writes, by the template's word.
    pub template: Option<&'static str>,
    /// Another Telegram chat, or none.
    pub telegram_chat_id: Option<Option<String>>,
    /// Whether it is told at all.
    pub is_active: Option<bool>,
}

/// Takes a webhook of the account for this transaction: whoever else changes it waits. Gives whether there is one.
pub async fn lock_webhook(conn: &mut Conn, account_id: Uuid, id: Uuid) -> Result<bool, Error> {
    let locked =
        query!("select id from webhooks where account_id = $1 and id = $2 for no key update", account_id, id)
            .fetch_optional(conn)
            .await?;
    Ok(locked.is_some())
}

/// Edits a webhook of the account. A new address, or being switched on, makes it one that has never failed; what was
/// said of why it was switched off is forgotten when its owner switches it.
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
        // Its owner knows.
        delete_mail(conn, account_id, Kind::WebhookOff, id).await?;
    }
    Ok(())
}

/// Gives a webhook of the account another signing secret, sealed. The one before signs beside it until
/// `previous_until`; any older one is forgotten.
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

/// Forgets the secrets that have ended their time beside a newer one: they are of no use but to a thief.
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

/// Deletes a webhook of the account with its deliveries; gives whether there was one.
pub async fn delete_webhook(conn: &mut Conn, account_id: Uuid, id: Uuid) -> Result<bool, Error> {
    let deleted = query!("delete from webhooks where account_id = $1 and id = $2", account_id, id);
    Ok(deleted.execute(conn).await?.rows_affected() > 0)
}
