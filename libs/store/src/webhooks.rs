//! Webhooks: who is told of submissions.

mod deactivation;
mod health;
mod update;

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::{query, query_as};
use uuid::Uuid;

pub use deactivation::{Deactivation, find_deactivation};
pub use health::{clear_failing, deactivate, mark_failing, update_chat_id};
pub use update::{
    WebhookChange, delete_expired_secrets, delete_webhook, lock_webhook, update_secret, update_webhook,
};

use crate::{Conn, Error, ListFilter};

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

/// Links webhooks of the account to a form; one that was told of all forms is from now on told of its own
/// alone. Gives how many of `webhook_ids` are the account's.
pub async fn link_webhooks(
    conn: &mut Conn,
    account_id: Uuid,
    form_id: Uuid,
    webhook_ids: &[Uuid],
) -> Result<u64, Error> {
    let found = query!(
        "update webhooks set all_forms = false where account_id = $1 and id = any($2)",
        account_id,
        webhook_ids
    )
    .execute(&mut *conn)
    .await?;
    query!(
        "insert into webhook_forms (webhook_id, form_id)
         select id, $2 from webhooks where account_id = $1 and id = any($3) on conflict do nothing",
        account_id,
        form_id,
        webhook_ids,
    )
    .execute(conn)
    .await?;
    Ok(found.rows_affected())
}

/// Unlinks webhooks of the account from a form.
pub async fn unlink_webhooks(
    conn: &mut Conn,
    account_id: Uuid,
    form_id: Uuid,
    webhook_ids: &[Uuid],
) -> Result<(), Error> {
    query!(
        "delete from webhook_forms l using webhooks w
         where w.id = l.webhook_id and w.account_id = $1 and l.form_id = $2 and w.id = any($3)",
        account_id,
        form_id,
        webhook_ids,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Which webhooks of the account are linked to these forms, as pairs of form and webhook, the oldest webhooks first.
/// Those told of all forms are linked to none.
pub async fn list_links(
    conn: &mut Conn,
    account_id: Uuid,
    form_ids: &[Uuid],
) -> Result<Vec<(Uuid, Uuid)>, Error> {
    let links = query!(
        "select l.form_id, l.webhook_id from webhook_forms l join webhooks w on w.id = l.webhook_id
         where w.account_id = $1 and l.form_id = any($2) order by w.created_at, w.id",
        account_id,
        form_ids,
    )
    .fetch_all(conn)
    .await?;
    Ok(links.into_iter().map(|link| (link.form_id, link.webhook_id)).collect())
}

/// A webhook of the account.
pub async fn find_webhook(conn: &mut Conn, account_id: Uuid, id: Uuid) -> Result<Option<Webhook>, Error> {
    let webhook = query_as!(
        Webhook,
        r#"select id, sealed_url, events, description, field_mapping, all_forms, template, telegram_chat_id, is_active,
                  deactivated_reason, deactivated_at, failing_since, previous_secret_until, created_at, updated_at,
                  array(select form_id from webhook_forms where webhook_id = webhooks.id) as "form_ids!"
           from webhooks where account_id = $1 and id = $2"#,
        account_id,
        id,
    )
    .fetch_optional(conn)
    .await?;
    Ok(webhook)
}

/// The account's webhooks, oldest first.
pub async fn list_webhooks(
    conn: &mut Conn,
    account_id: Uuid,
    filter: &ListFilter,
) -> Result<Vec<Webhook>, Error> {
    let webhooks = query_as!(
        Webhook,
        r#"select id, sealed_url, events, description, field_mapping, all_forms, template, telegram_chat_id, is_active,
                  deactivated_reason, deactivated_at, failing_since, previous_secret_until, created_at, updated_at,
                  array(select form_id from webhook_forms where webhook_id = webhooks.id) as "form_ids!"
           from webhooks
           where account_id = $1
             and ($2::uuid is null or exists (select from things where kind = 'webhooks' and things.id = webhooks.id
                                                                   and folder_id = $2))
             and ($3::uuid[] is null or id = any($3))
             and ($4::timestamptz is null or (created_at, id) > ($4, $5))
           order by created_at, id limit $6::bigint + 1"#,
        account_id,
        filter.folder_id,
        filter.ids.as_deref(),
        filter.after.map(|after| after.created_at),
        filter.after.map(|after| after.id),
        filter.limit,
    )
    .fetch_all(conn)
    .await?;
    Ok(webhooks)
}
