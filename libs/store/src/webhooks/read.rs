//! Reads webhooks.

use chrono::{DateTime, Utc};
use serde_json::Value;
use uuid::Uuid;

use crate::list_filter::{collect_page, sorted_stream};
use crate::{Conn, Error, ListFilter, ListPage};

/// A webhook as its owner sees it, with its URL still encrypted.
#[derive(Debug, Clone)]
pub struct Webhook {
    pub id: Uuid,
    /// Its encrypted URL.
    pub sealed_url: Vec<u8>,
    /// Empty for new submissions only.
    pub events: Vec<String>,
    pub description: Option<String>,
    /// Renames of submission fields.
    pub field_mapping: Option<Value>,
    /// Whether it receives the events of every form.
    pub all_forms: bool,
    /// The forms it is linked to.
    pub form_ids: Vec<Uuid>,
    /// Format of the messages, by the template's name.
    pub template: String,
    pub telegram_chat_id: Option<String>,
    pub is_active: bool,
    /// Why it was deactivated automatically: `gone` or `failing`.
    pub deactivated_reason: Option<String>,
    pub deactivated_at: Option<DateTime<Utc>>,
    /// When its deliveries began to fail.
    pub failing_since: Option<DateTime<Utc>>,
    /// Until when the previous secret signs as well.
    pub previous_secret_until: Option<DateTime<Utc>>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

/// Returns a webhook of the account.
pub async fn find_webhook(conn: &mut Conn, account_id: Uuid, id: Uuid) -> Result<Option<Webhook>, Error> {
    let filter = ListFilter { ids: Some(vec![id]), limit: 1, ..ListFilter::default() };
    Ok(list_webhooks(conn, account_id, &filter).await?.rows.pop())
}

/// Bytes of a form's id in a list.
const ID_BYTES: usize = 39;

/// Returns a page of the account's webhooks.
pub async fn list_webhooks(
    conn: &mut Conn,
    account_id: Uuid,
    filter: &ListFilter,
) -> Result<ListPage<Webhook>, Error> {
    let rows = sorted_stream!(
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
             and ($3::uuid[] is null or id = any($3))"#,
        "created_at",
        "id"
    );
    let bytes_of = |row: &Webhook| {
        row.form_ids.len() * ID_BYTES + row.field_mapping.as_ref().map_or(0, domain::json_bytes)
    };
    collect_page(rows, filter.limit, bytes_of).await
}
