//! Inserts webhooks.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::query;
use uuid::Uuid;

use crate::{Conn, Error};

/// A webhook to store.
#[derive(Debug)]
pub struct NewWebhook {
    pub id: Uuid,
    /// Its encrypted URL.
    pub sealed_url: Vec<u8>,
    /// Empty for new submissions only.
    pub events: Vec<String>,
    pub description: Option<String>,
    /// Renames of submission fields.
    pub field_mapping: Option<Value>,
    /// `None` for all forms of the account.
    pub form_ids: Option<Vec<Uuid>>,
    /// Its encrypted signing secret.
    pub sealed_secret: Vec<u8>,
    /// Format of the messages, by the template's name.
    pub template: &'static str,
    pub telegram_chat_id: Option<String>,
    pub created_at: DateTime<Utc>,
}

/// Inserts a webhook and its links. Forms of other accounts are not linked.
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
