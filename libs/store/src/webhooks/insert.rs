//! Stores a webhook with its links to forms.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::query;
use uuid::Uuid;

use crate::{Conn, Error};

/// A webhook about to be stored.
#[derive(Debug)]
pub struct NewWebhook {
    /// Its id.
    pub id: Uuid,
    /// Its address, sealed.
    pub sealed_url: Vec<u8>,
    /// What it is told of; empty for new submissions alone.
    pub events: Vec<String>,
    /// The owner's own note.
    pub description: Option<String>,
    /// New names for answers.
    pub field_mapping: Option<Value>,
    /// The forms it is told of; `None` for all of the account.
    pub form_ids: Option<Vec<Uuid>>,
    /// Its signing secret, sealed.
    pub sealed_secret: Vec<u8>,
    /// For whom it writes, by the template's word.
    pub template: &'static str,
    /// The Telegram chat it writes to.
    pub telegram_chat_id: Option<String>,
    /// Now.
    pub created_at: DateTime<Utc>,
}

/// Stores a webhook and its links. The forms must be the account's: the statement links no other.
pub async fn insert_webhook(conn: &mut Conn, account_id: Uuid, webhook: &NewWebhook) -> Result<(), Error> {
    query!(
        "insert into webhooks (id, account_id, sealed_url, events, description, field_mapping, all_forms,
                               sealed_secret, template, telegram_chat_id, created_at, updated_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $11)",
        webhook.id,
        account_id,
        webhook.sealed_url,
        &webhook.events,
        webhook.description,
        webhook.field_mapping,
        webhook.form_ids.is_none(),
        webhook.sealed_secret,
        webhook.template,
        webhook.telegram_chat_id,
        webhook.created_at,
    )
    .execute(&mut *conn)
    .await?;
    let form_ids = webhook.form_ids.as_deref().unwrap_or_default();
    query!(
        "insert into webhook_forms (webhook_id, form_id)
         select $2, id from forms where account_id = $1 and id = any($3)",
        account_id,
        webhook.id,
        form_ids,
    )
    .execute(conn)
    .await?;
    Ok(())
}
