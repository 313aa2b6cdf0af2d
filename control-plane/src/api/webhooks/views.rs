//! Webhooks in responses.

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
    /// Note for the owner; null for none.
    description: Option<String>,
    /// Left out for a key that is restricted to other forms than those of the webhook.
    #[serde(flatten)]
    details: Option<WebhookDetails>,
}

/// A key that is restricted to other forms than those of the webhook sees only `id` and `description`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct WebhookDetails {
    /// HTTPS URL to which deliveries are posted.
    url: String,
    /// Event types to deliver; `*` for all.
    events: Vec<String>,
    /// New names for answers, by field name; null for none.
    field_mapping: Option<Value>,
    /// `default`, `slack`, `discord`, `telegram`, `teams` or `google-chat`. Teams accepts a delivery before it posts
    /// it; later failures appear only in the run history of the Teams workflow.
    template: String,
    /// Id of the chat that a Telegram bot posts to; null for none.
    telegram_chat_id: Option<String>,
    /// Whether it receives events of every form.
    all_forms: bool,
    /// The forms it receives events of; empty if it receives those of every form.
    form_ids: Vec<Uuid>,
    /// Whether events are delivered.
    is_active: bool,
    /// Why it was disabled automatically: `gone` (the receiver responded with 410 or similar) or `failing` (no
    /// delivery succeeded for days). Null otherwise.
    deactivated_reason: Option<String>,
    /// When it was disabled automatically; null otherwise.
    deactivated_at: Option<DateTime<Utc>>,
    /// Since when every attempt has failed; null if the last one succeeded.
    failing_since: Option<DateTime<Utc>>,
    /// Until when deliveries are also signed with the previous secret; null if they are not.
    previous_secret_until: Option<DateTime<Utc>>,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct WebhookUpdateResponse {
    #[serde(flatten)]
    pub(super) webhook: WebhookView,
    /// Whether `template` was chosen by the address, because it is one of a chat and the request named no template.
    /// Name one, such as `default`, for another format.
    pub(super) template_detected: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct WebhookSecretResponse {
    #[serde(flatten)]
    pub(super) webhook: WebhookView,
    /// Verifies deliveries with any Standard Webhooks library. It is shown only once.
    pub(super) secret: String,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct WebhookCreationResponse {
    #[serde(flatten)]
    pub(super) webhook: WebhookUpdateResponse,
    /// Verifies deliveries with any Standard Webhooks library. It is shown only once.
    pub(super) secret: String,
}

/// Returns a webhook of the account.
pub(super) async fn find<S>(call: &Call<S>, conn: &mut Conn, id: Uuid) -> Result<Webhook, Problem> {
    let webhook = store::webhooks::find_webhook(conn, call.account_id, id).await?;
    webhook.ok_or_else(|| Problem::not_found("webhook"))
}

/// A webhook as a caller may see it: one that receives events of forms outside the caller's restrictions without its details.
pub(super) async fn visible_view<S>(
    app: &App,
    call: &Call<S>,
    conn: &mut Conn,
    webhook: Webhook,
) -> Result<WebhookView, Problem> {
    if call.covers_forms_of(conn, &webhook).await? {
        return view(app, call, webhook);
    }
    Ok(WebhookView { id: webhook.id, description: webhook.description, details: None })
}

/// A webhook with its details.
pub(super) fn view<S>(app: &App, call: &Call<S>, webhook: Webhook) -> Result<WebhookView, Problem> {
    let url = app.master_key.open(webhooks::URL_PURPOSE, &webhook.sealed_url)?;
    let details = WebhookDetails {
        url: String::from_utf8_lossy(&url).into_owned(),
        events: webhook.events,
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
    };
    Ok(WebhookView { id: webhook.id, description: webhook.description, details: Some(details) })
}

/// Encrypts `text` for `purpose`.
pub(super) fn seal(app: &App, purpose: &str, text: &str) -> Vec<u8> {
    app.master_key.seal(purpose, app.rng.bytes(), text.as_bytes())
}
