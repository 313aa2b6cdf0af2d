//! Webhooks: have submissions sent to you, signed.

use std::collections::BTreeMap;

use axum::extract::State;
use domain::Cursor;
use domain::chat::telegram;
use domain::scopes::Resource;
use domain::webhooks::{self, Template, Wishes};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::usage::{self, Counter};
use store::webhooks::NewWebhook;
use uuid::Uuid;
use web::{Created, Deleted, Json, Listed, Paging, Path, Problem, Query, Reply};

use super::webhook_edits::update;
use super::webhook_reach::{check_address, check_forms, check_heard};
use super::webhook_tests::test;
use super::webhook_views::{WebhookView, WebhookWithSecret, find, seal, view};
use crate::App;
use crate::call::{Call, scope};

/// The endpoints.
pub(super) fn resource() -> web::Resource<App> {
    web::Resource::new("webhooks")
        .post("/api/webhooks", create, "Create a webhook; its signing secret is shown this once")
        .get("/api/webhooks", list, "List webhooks")
        .get("/api/webhooks/{id}", read, "Read a webhook")
        .patch("/api/webhooks/{id}", update, "Edit a webhook, or switch it off or on")
        .delete("/api/webhooks/{id}", delete, "Delete a webhook with its deliveries for good")
        .post("/api/webhooks/{id}/test", test, "Send a webhook a signed ping and see how it answers")
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WantedWebhook {
    /// Where deliveries are posted; https.
    #[schemars(length(max = webhooks::URL_BYTES_MAX), extend("format" = "uri"))]
    url: String,
    /// What it is told of; new submissions unless told otherwise, `*` for everything.
    #[serde(default)]
    #[schemars(length(max = webhooks::EVENTS_MAX), inner(regex(pattern = webhooks::EVENT_PATTERN)))]
    events: Vec<String>,
    #[schemars(length(max = webhooks::DESCRIPTION_CHARS_MAX))]
    description: Option<String>,
    /// New names for answers.
    #[schemars(extend("maxProperties" = webhooks::MAPPED_MAX, "additionalProperties" = {"type": "string", "minLength": 1, "maxLength": webhooks::MAPPED_CHARS_MAX}))]
    field_mapping: Option<BTreeMap<String, String>>,
    /// For whom it writes: plain JSON unless told otherwise.
    template: Option<Template>,
    /// The chat a Telegram bot writes to.
    #[schemars(regex(pattern = telegram::CHAT_ID_PATTERN))]
    telegram_chat_id: Option<String>,
    /// The forms it is told of; every form of the account if absent.
    form_ids: Option<Vec<Uuid>>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Webhooks {
    webhooks: Vec<WebhookView>,
    #[serde(flatten)]
    listed: Listed,
}

async fn create(
    call: Call<scope::WebhooksCreate>,
    State(app): State<App>,
    Json(wanted): Json<WantedWebhook>,
) -> Result<Created<WebhookWithSecret>, Problem> {
    let template = wanted.template.unwrap_or_default();
    let mut complaints = webhooks::check(&wanted.wishes());
    complaints.extend(webhooks::check_chat(template, wanted.telegram_chat_id.as_deref()));
    complaints.extend(check_address(&app, Some(&wanted.url)).filter(|_| complaints.is_empty()));
    if !complaints.is_empty() {
        return Err(Problem::validation(complaints));
    }
    let secret = webhooks::make_secret(&app.rng.bytes());
    let new = NewWebhook {
        id: app.rng.uuid_v7(call.now),
        sealed_url: seal(&app, webhooks::URL_PURPOSE, &wanted.url),
        events: wanted.events,
        description: wanted.description,
        field_mapping: wanted.field_mapping.map(|mapping| json!(mapping)),
        form_ids: wanted.form_ids,
        sealed_secret: seal(&app, webhooks::SECRET_PURPOSE, &secret),
        template: template.word(),
        telegram_chat_id: wanted.telegram_chat_id,
        created_at: call.now,
    };
    let limit = call.limits().webhooks;
    let mut tx = store::begin(&app.db).await?;
    call.check_new(Resource::Webhooks)?;
    check_forms(&call, &mut tx, new.form_ids.as_deref().filter(|ids| !ids.is_empty())).await?;
    if !usage::take(&mut tx, call.account_id, Counter::Webhooks, limit).await? {
        return Err(call.quota_exceeded("webhooks", limit));
    }
    store::webhooks::insert_webhook(&mut tx, call.account_id, &new).await?;
    let webhook = find(&call, &mut tx, new.id).await?;
    let webhook = view(&app, &call, webhook)?;
    app.commit(tx, vec![]).await?;

    let it = json!({"id": webhook.id});
    Ok(call
        .created(WebhookWithSecret { webhook, secret })
        .next("try", "webhooks.test", it.clone(), "Send it a signed ping and see how it answers")
        .next("check", "deliveries.list", it, "See what was delivered and how the receiver answered"))
}

async fn list(
    call: Call<scope::WebhooksRead>,
    State(app): State<App>,
    Query(paging): Query<Paging>,
) -> Result<Reply<Webhooks>, Problem> {
    let part = call.list_filter(Resource::Webhooks, &paging)?;
    let mut conn = store::acquire(&app.db).await?;
    let mut rows = store::webhooks::list_webhooks(&mut conn, call.account_id, &part).await?;
    let listed = Listed::cut(&mut rows, part.limit, |row| Cursor { created_at: row.created_at, id: row.id });
    let webhooks = rows.into_iter().map(|row| view(&app, &call, row)).collect::<Result<_, _>>()?;
    Ok(call.reply(Webhooks { webhooks, listed: listed.clone() }).part(listed))
}

async fn read(
    call: Call<scope::WebhooksRead>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
) -> Result<Reply<WebhookView>, Problem> {
    let mut conn = store::acquire(&app.db).await?;
    call.check_id(&mut conn, Resource::Webhooks, id).await?;
    let webhook = find(&call, &mut conn, id).await?;
    let webhook = view(&app, &call, webhook)?;
    Ok(call.reply(webhook))
}

async fn delete(
    call: Call<scope::WebhooksDelete>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
) -> Result<Reply<Deleted>, Problem> {
    let mut tx = store::begin(&app.db).await?;
    // First, as everywhere: submissions with files wait for it before they look for webhooks.
    usage::lock(&mut tx, call.account_id).await?;
    call.check_id(&mut tx, Resource::Webhooks, id).await?;
    check_heard(&call, &find(&call, &mut tx, id).await?, &mut tx).await?;
    if !store::webhooks::delete_webhook(&mut tx, call.account_id, id).await? {
        return Err(Problem::not_found("webhook"));
    }
    usage::give_back(&mut tx, call.account_id, Counter::Webhooks).await?;
    app.commit(tx, vec![]).await?;
    Ok(call.reply(Deleted::now()))
}

impl WantedWebhook {
    fn wishes(&self) -> Wishes<'_> {
        Wishes {
            url: Some(&self.url),
            events: Some(&self.events),
            description: self.description.as_deref(),
            field_mapping: self.field_mapping.as_ref(),
            telegram_chat_id: self.telegram_chat_id.as_deref(),
        }
    }
}
