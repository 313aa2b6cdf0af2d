//! Editing a webhook: where it goes, what it is told, and whether at all.
//!
//! Switched off, it is told nothing, and what was under way is taken back rather than held: it would arrive as news
//! whenever somebody switches it on. It can be sent again by hand.

use std::collections::BTreeMap;

use axum::extract::State;
use domain::chat::telegram;
use domain::scopes::Resource;
use domain::webhooks::{self, Template, Wishes};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use store::webhooks::{Webhook, WebhookChange};
use uuid::Uuid;
use web::{Json, Path, Problem, Reply};

use super::webhook_reach::{check_address, check_heard};
use super::webhook_views::{WebhookView, find, seal, view};
use crate::App;
use crate::call::{Call, scope};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct EditedWebhook {
    #[schemars(length(max = webhooks::URL_BYTES_MAX), extend("format" = "uri"))]
    url: Option<String>,
    #[schemars(length(max = webhooks::EVENTS_MAX), inner(regex(pattern = webhooks::EVENT_PATTERN)))]
    events: Option<Vec<String>>,
    /// Off, it is told nothing and what is under way is taken back.
    is_active: Option<bool>,
    /// Null removes it.
    #[serde(default, deserialize_with = "web::present")]
    #[schemars(with = "Option<String>", length(max = webhooks::DESCRIPTION_CHARS_MAX))]
    description: Option<Option<String>>,
    /// Null leaves answers their own names.
    #[serde(default, deserialize_with = "web::present")]
    #[schemars(with = "Option<BTreeMap<String, String>>", extend("maxProperties" = webhooks::MAPPED_MAX, "additionalProperties" = {"type": "string", "minLength": 1, "maxLength": webhooks::MAPPED_CHARS_MAX}))]
    field_mapping: Option<Option<BTreeMap<String, String>>>,
    template: Option<Template>,
    #[serde(default, deserialize_with = "web::present")]
    #[schemars(with = "Option<String>", regex(pattern = telegram::CHAT_ID_PATTERN))]
    telegram_chat_id: Option<Option<String>>,
}

pub(super) async fn update(
    call: Call<scope::WebhooksUpdate>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
    Json(edited): Json<EditedWebhook>,
) -> Result<Reply<WebhookView>, Problem> {
    let mut complaints = webhooks::check(&edited.wishes());
    complaints.extend(check_address(&app, edited.url.as_deref()).filter(|_| complaints.is_empty()));
    if !complaints.is_empty() {
        return Err(Problem::validation(complaints));
    }
    let mut tx = store::begin(&app.db).await?;
    call.check_id(&mut tx, Resource::Webhooks, id).await?;
    if !store::webhooks::lock_webhook(&mut tx, call.account_id, id).await? {
        return Err(Problem::not_found("webhook"));
    }
    let current = find(&call, &mut tx, id).await?;
    check_heard(&call, &current, &mut tx).await?;
    edited.check_chat(&current)?;
    // On as well as off: an event may have come while it was being switched off, and was left behind.
    if edited.is_active.is_some_and(|wanted| !wanted || !current.is_active) {
        store::deliveries::cancel_pending(&mut tx, call.account_id, id, call.now).await?;
    }
    let change = edited.change(&app);
    store::webhooks::update_webhook(&mut tx, call.account_id, id, &change, call.now).await?;
    let webhook = find(&call, &mut tx, id).await?;
    app.commit(tx, vec![]).await?;
    let webhook = view(&app, &call, webhook)?;
    Ok(call.reply(webhook))
}

impl EditedWebhook {
    fn wishes(&self) -> Wishes<'_> {
        Wishes {
            url: self.url.as_deref(),
            events: self.events.as_deref(),
            description: self.description.as_ref().and_then(Option::as_deref),
            field_mapping: self.field_mapping.as_ref().and_then(Option::as_ref),
            telegram_chat_id: self.telegram_chat_id.as_ref().and_then(Option::as_deref),
        }
    }

    /// What it would be afterwards must still have its chat.
    fn check_chat(&self, current: &Webhook) -> Result<(), Problem> {
        let template = self.template.or_else(|| Template::parse(&current.template)).unwrap_or_default();
        let chat_id = self.telegram_chat_id.as_ref().unwrap_or(&current.telegram_chat_id);
        match webhooks::check_chat(template, chat_id.as_deref()) {
            Some(complaint) => Err(Problem::validation(vec![complaint])),
            None => Ok(()),
        }
    }

    fn change(self, app: &App) -> WebhookChange {
        WebhookChange {
            sealed_url: self.url.map(|url| seal(app, webhooks::URL_PURPOSE, &url)),
            events: self.events,
            description: self.description,
            field_mapping: self.field_mapping.map(|mapping| mapping.map(|mapping| json!(mapping))),
            template: self.template.map(Template::word),
            telegram_chat_id: self.telegram_chat_id,
            is_active: self.is_active,
        }
    }
}
