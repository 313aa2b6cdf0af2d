//! Validates and inserts a webhook. Several operations create webhooks, each in a transaction of its own.

use std::collections::BTreeMap;

use domain::FieldError;
use domain::scopes::Resource;
use domain::webhooks::{self, Template, WebhookSettings};
use serde_json::json;
use store::usage::{self, Counter};
use store::webhooks::{NewWebhook, Webhook};
use uuid::Uuid;
use web::Problem;

use super::authorization::{check_address, check_forms, check_mapping, check_not_own};
use super::views::{find, seal};
use crate::App;
use crate::call::Call;

/// The field of a webhook's URL.
pub(super) const URL: &str = "url";

/// The settings of a webhook to create.
#[derive(Debug)]
pub(in crate::api) struct WebhookInput {
    /// Path of the URL's field in the request.
    pub(in crate::api) url_field: &'static str,
    pub(in crate::api) url: String,
    /// Empty for new submissions only.
    pub(in crate::api) events: Vec<String>,
    pub(in crate::api) description: Option<String>,
    pub(in crate::api) field_mapping: Option<BTreeMap<String, String>>,
    pub(in crate::api) template: Template,
    pub(in crate::api) telegram_chat_id: Option<String>,
    /// `None` for all forms of the account.
    pub(in crate::api) form_ids: Option<Vec<Uuid>>,
}

/// A webhook that was inserted.
#[derive(Debug)]
pub(in crate::api) struct InsertedWebhook {
    pub(in crate::api) webhook: Webhook,
    /// Its signing secret.
    pub(in crate::api) secret: String,
}

impl WebhookInput {
    /// Returns what is wrong with the settings.
    pub(in crate::api) fn check(&self, app: &App) -> Vec<FieldError> {
        let mut errors = webhooks::check(&WebhookSettings {
            url: Some(&self.url),
            events: Some(&self.events),
            description: self.description.as_deref(),
            field_mapping: self.field_mapping.as_ref(),
            telegram_chat_id: self.telegram_chat_id.as_deref(),
        });
        errors.extend(webhooks::check_chat(self.template, self.telegram_chat_id.as_deref()));
        errors.extend(check_address(app, Some(&self.url)).filter(|_| errors.is_empty()));
        for error in errors.iter_mut().filter(|error| error.field == URL) {
            error.field = self.url_field.to_owned();
            if let Some(rule) = error.message.strip_prefix(URL) {
                error.message = format!("{}{rule}", self.url_field);
            }
        }
        errors
    }

    /// Inserts a webhook with valid settings and counts it.
    pub(in crate::api) async fn insert<S>(
        self,
        call: &Call<S>,
        app: &App,
        tx: &mut store::Tx,
    ) -> Result<InsertedWebhook, Problem> {
        call.check_new(Resource::Webhooks)?;
        check_not_own(app, tx, self.url_field, Some(&self.url)).await?;
        check_forms(call, tx, self.form_ids.as_deref().filter(|ids| !ids.is_empty())).await?;
        let limit = call.limits().webhooks;
        if !usage::reserve(tx, call.account_id, Counter::Webhooks, limit).await? {
            return Err(call.count_exceeded(tx, Counter::Webhooks).await);
        }
        let secret = webhooks::make_secret(&app.rng.bytes());
        let new = NewWebhook {
            id: app.rng.uuid_v7(call.now),
            sealed_url: seal(app, webhooks::URL_PURPOSE, &self.url),
            events: self.events,
            description: self.description,
            field_mapping: self.field_mapping.map(|mapping| json!(mapping)),
            form_ids: self.form_ids,
            sealed_secret: seal(app, webhooks::SECRET_PURPOSE, &secret),
            template: self.template.as_str(),
            telegram_chat_id: self.telegram_chat_id,
            created_at: call.now,
        };
        store::webhooks::insert_webhook(tx, call.account_id, &new).await?;
        check_mapping(tx, call.account_id, new.id).await?;
        let webhook = find(call, tx, new.id).await?;
        Ok(InsertedWebhook { webhook, secret })
    }
}
