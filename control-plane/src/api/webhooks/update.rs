//! Updates webhooks.
//!
//! Disabling a webhook cancels its pending deliveries instead of keeping them: they would arrive as outdated news
//! when it is enabled again. Canceled deliveries can be retried manually.

use std::collections::BTreeMap;

use axum::extract::State;
use domain::chat::telegram;
use domain::scopes::Resource;
use domain::webhooks::{self, Template, WebhookSettings};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use store::webhooks::{Webhook, WebhookChange};
use uuid::Uuid;
use web::{Json, Path, Problem, Reply};

use super::authorization::{check_address, check_existing, check_forms, check_mapping, check_not_own};
use super::insert::URL;
use super::views::{WebhookUpdateResponse, find, seal, view};
use crate::App;
use crate::call::{Call, scope};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct UpdateWebhookRequest {
    /// HTTPS URL to which deliveries are posted.
    #[schemars(length(max = webhooks::URL_BYTES_MAX), extend("format" = "uri"))]
    url: Option<String>,
    /// Event types to deliver; `*` for all.
    #[schemars(length(max = webhooks::EVENTS_MAX), inner(regex(pattern = webhooks::EVENT_PATTERN)))]
    events: Option<Vec<String>>,
    /// Whether to deliver events. Disabling cancels pending deliveries.
    is_active: Option<bool>,
    /// Note for the owner; null removes it.
    #[serde(default, deserialize_with = "web::present")]
    #[schemars(with = "Option<String>", length(max = webhooks::DESCRIPTION_CHARS_MAX))]
    description: Option<Option<String>>,
    /// New names for answers, by field name; null keeps the fields' own names.
    #[serde(default, deserialize_with = "web::present")]
    #[schemars(with = "Option<BTreeMap<String, String>>", extend("maxProperties" = webhooks::MAPPED_MAX, "additionalProperties" = {"type": "string", "minLength": 1, "maxLength": webhooks::MAPPED_CHARS_MAX}))]
    field_mapping: Option<Option<BTreeMap<String, String>>>,
    /// Format of the body. If this is left out, a new `url` brings the format of its chat, or `default`, unless another
    /// one than that of the old `url` was chosen.
    template: Option<Template>,
    /// Id of the chat that a Telegram bot posts to; null removes it.
    #[serde(default, deserialize_with = "web::present")]
    #[schemars(with = "Option<String>", regex(pattern = telegram::CHAT_ID_PATTERN))]
    telegram_chat_id: Option<Option<String>>,
    /// Exactly the forms to deliver events of; null for every form of the account, also later ones.
    #[serde(default, deserialize_with = "web::present")]
    #[schemars(with = "Option<Vec<Uuid>>")]
    form_ids: Option<Option<Vec<Uuid>>>,
}

pub(super) async fn update(
    call: Call<scope::WebhooksUpdate>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
    Json(mut request): Json<UpdateWebhookRequest>,
) -> Result<Reply<WebhookUpdateResponse>, Problem> {
    let mut errors = webhooks::check(&request.settings());
    errors.extend(check_address(&app, request.url.as_deref()).filter(|_| errors.is_empty()));
    if !errors.is_empty() {
        return Err(Problem::validation(errors));
    }
    let mut tx = store::begin(&app.db).await?;
    call.check_id(&mut tx, Resource::Webhooks, id).await?;
    if !store::webhooks::lock_webhook(&mut tx, call.account_id, id).await? {
        return Err(Problem::not_found("webhook"));
    }
    let current = find(&call, &mut tx, id).await?;
    check_existing(&call, &current, &mut tx).await?;
    check_not_own(&app, &mut tx, URL, request.url.as_deref()).await?;
    let detected = request.detect_template(&app, &current)?;
    request.check_chat(&current)?;
    if let Some(form_ids) = &request.form_ids {
        check_forms(&call, &mut tx, form_ids.as_deref().filter(|ids| !ids.is_empty())).await?;
        store::webhooks::update_forms(&mut tx, call.account_id, id, form_ids.as_deref()).await?;
    }
    // Also when enabling: an event that arrived while the webhook was being disabled may have left a pending
    // delivery.
    if request.is_active.is_some_and(|active| !active || !current.is_active) {
        store::deliveries::cancel_pending(&mut tx, call.account_id, id, call.now).await?;
    }
    let is_mapped = request.field_mapping.is_some() || request.form_ids.is_some();
    let change = request.change(&app);
    store::webhooks::update_webhook(&mut tx, call.account_id, id, &change, call.now).await?;
    if is_mapped {
        check_mapping(&mut tx, call.account_id, id).await?;
    }
    let webhook = find(&call, &mut tx, id).await?;
    call.commit(&app, tx, vec![]).await?;
    let webhook = view(&app, &call, webhook)?;
    Ok(call.reply(WebhookUpdateResponse { webhook, template_detected: detected }))
}

impl UpdateWebhookRequest {
    fn settings(&self) -> WebhookSettings<'_> {
        WebhookSettings {
            url: self.url.as_deref(),
            events: self.events.as_deref(),
            description: self.description.as_ref().and_then(Option::as_deref),
            field_mapping: self.field_mapping.as_ref().and_then(Option::as_ref),
            telegram_chat_id: self.telegram_chat_id.as_ref().and_then(Option::as_deref),
        }
    }

    /// Takes the template of a new address, unless the request names one or the owner chose another one than the old
    /// address implies. Returns whether it is that of a chat.
    fn detect_template(&mut self, app: &App, current: &Webhook) -> Result<bool, Problem> {
        let (Some(url), None) = (&self.url, self.template) else { return Ok(false) };
        let old_url = app.master_key.open(webhooks::URL_PURPOSE, &current.sealed_url)?;
        let implied = Template::of_address(&String::from_utf8_lossy(&old_url)).unwrap_or_default();
        if current.template != implied.as_str() {
            return Ok(false);
        }
        let detected = Template::of_address(url);
        self.template = Some(detected.unwrap_or_default());
        Ok(detected.is_some())
    }

    /// Checks that the webhook after the update has a chat id if its template needs one.
    fn check_chat(&self, current: &Webhook) -> Result<(), Problem> {
        let template = self.template.or_else(|| Template::parse(&current.template)).unwrap_or_default();
        let chat_id = self.telegram_chat_id.as_ref().unwrap_or(&current.telegram_chat_id);
        match webhooks::check_chat(template, chat_id.as_deref()) {
            Some(error) => Err(Problem::validation(vec![error])),
            None => Ok(()),
        }
    }

    fn change(self, app: &App) -> WebhookChange {
        WebhookChange {
            sealed_url: self.url.map(|url| seal(app, webhooks::URL_PURPOSE, &url)),
            events: self.events,
            description: self.description,
            field_mapping: self.field_mapping.map(|mapping| mapping.map(|mapping| json!(mapping))),
            template: self.template.map(Template::as_str),
            telegram_chat_id: self.telegram_chat_id,
            is_active: self.is_active,
        }
    }
}
