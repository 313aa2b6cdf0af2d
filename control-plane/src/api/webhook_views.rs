//! How a webhook is shown to its owner.

use chrono::{DateTime, Utc};
use domain::webhooks;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use store::Conn;
use store::webhooks::Webhook;
use uuid::Uuid;
use web::Problem;

use crate::App;
use crate::call::Call;

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct WebhookView {
    pub(super) id: Uuid,
    url: String,
    events: Vec<String>,
    description: Option<String>,
    field_mapping: Option<Value>,
    /// `default`, `slack`, `discord`, `telegram`, `teams` or `google-chat`. Teams takes a delivery before it is posted:
    /// what becomes of it then stands in the workflow's own history.
    template: String,
    telegram_chat_id: Option<String>,
    /// Whether it is told of every form.
    all_forms: bool,
    form_ids: Vec<Uuid>,
    is_active: bool,
    /// Why it was switched off, if not by its owner: `gone` (it answered 410 or the like) or `failing` (nothing was
    /// delivered for days).
    deactivated_reason: Option<String>,
    deactivated_at: Option<DateTime<Utc>>,
    /// Since when nothing has been delivered although it was tried.
    failing_since: Option<DateTime<Utc>>,
    /// Until when deliveries are signed with the secret before the last change, too.
    previous_secret_until: Option<DateTime<Utc>>,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct WebhookWithSecret {
    #[serde(flatten)]
    pub(super) webhook: WebhookView,
    /// Verify deliveries with it, by any Standard Webhooks library. It is shown this once.
    pub(super) secret: String,
}

/// A webhook of the account.
pub(super) async fn find<S>(call: &Call<S>, conn: &mut Conn, id: Uuid) -> Result<Webhook, Problem> {
    let webhook = store::webhooks::find_webhook(conn, call.account_id, id).await?;
    webhook.ok_or_else(|| Problem::not_found("webhook"))
}

pub(super) fn view<S>(app: &App, call: &Call<S>, webhook: Webhook) -> Result<WebhookView, Problem> {
    let url = app.master_key.open(webhooks::URL_PURPOSE, &webhook.sealed_url)?;
    Ok(WebhookView {
        id: webhook.id,
        url: String::from_utf8_lossy(&url).into_owned(),
        events: webhook.events,
        description: webhook.description,
        field_mapping: webhook.field_mapping,
        template: webhook.template,
        telegram_chat_id: webhook.telegram_chat_id,
        all_forms: webhook.all_forms,
        form_ids: webhook.form_ids,
        is_active: webhook.is_active,
        deactivated_reason: webhook.deactivated_reason,
        deactivated_at: webhook.deactivated_at,
        failing_since: webhook.failing_since,
        previous_secret_until: webhook.previous_secret_until.filter(|until| *until > call.now),
        created_at: webhook.created_at,
        updated_at: webhook.updated_at,
    })
}

/// `text` sealed for that purpose.
pub(super) fn seal(app: &App, purpose: &str, text: &str) -> Vec<u8> {
    app.master_key.seal(purpose, app.rng.bytes(), text.as_bytes())
}
