//! Reads webhooks.

use chrono::{DateTime, Utc};
use serde_json::Value;
use uuid::Uuid;

use crate::list_filter::list_rows;
use crate::{Conn, Error, ListFilter};

/// A webhook as its owner sees it, its address still sealed.
#[derive(Debug, Clone)]
pub struct Webhook {
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
    /// Whether it is told of every form.
    pub all_forms: bool,
    /// The forms it is linked to.
    pub form_ids: Vec<Uuid>,
    /// For whom it writes, by the template's word.
    pub template: String,
    /// The Telegram chat it writes to.
    pub telegram_chat_id: Option<String>,
    /// Whether it is told at all.
    pub is_active: bool,
    /// Why it was switched off, if not by its owner: `gone` or `failing`.
    pub deactivated_reason: Option<String>,
    /// When that was.
    pub deactivated_at: Option<DateTime<Utc>>,
    /// Since when nothing has been delivered although it was tried.
    pub failing_since: Option<DateTime<Utc>>,
    /// Until when the secret before the last change signs as well.
    pub previous_secret_until: Option<DateTime<Utc>>,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// When it was last edited.
    pub updated_at: DateTime<Utc>,
}

/// A webhook of the account.
pub async fn find_webhook(conn: &mut Conn, account_id: Uuid, id: Uuid) -> Result<Option<Webhook>, Error> {
    let filter = ListFilter { ids: Some(vec![id]), limit: 1, ..ListFilter::default() };
    Ok(list_webhooks(conn, account_id, &filter).await?.pop())
}

/// The account's webhooks, oldest first.
pub async fn list_webhooks(
    conn: &mut Conn,
    account_id: Uuid,
    filter: &ListFilter,
) -> Result<Vec<Webhook>, Error> {
    Ok(list_rows!(
        Webhook,
        conn,
        account_id,
        filter,
        r#"select id, sealed_url, events, description, field_mapping, all_forms, template, telegram_chat_id, is_active,
                  deactivated_reason, deactivated_at, failing_since, previous_secret_until, created_at, updated_at,
                  array(select form_id from webhook_forms where webhook_id = webhooks.id) as "form_ids!"
           from webhooks
           where account_id = $1
             and ($2::uuid is null or exists (select from things where kind = 'webhooks' and things.id = webhooks.id
                                                                   and folder_id = $2))
             and ($3::uuid[] is null or id = any($3))
             and ($4::timestamptz is null or (created_at, id) > ($4, $5))
           order by created_at, id limit $6::bigint + 1"#
    )?)
}
