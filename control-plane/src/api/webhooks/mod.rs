//! Webhooks: signed notifications of submissions.

mod authorization;
pub(super) mod deliveries;
mod delivery_view;
mod ping;
mod secrets;
mod update;
mod views;

use std::collections::BTreeMap;

use axum::extract::State;
use domain::chat::telegram;
use domain::scopes::Resource;
use domain::webhooks::{self, Template, WebhookSettings};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use store::usage::{self, Counter};
use store::webhooks::NewWebhook;
use uuid::Uuid;
use web::{Created, Deletion, Json, PageInfo, Path, Problem, Query, Reply, Sort};

use self::authorization::{check_address, check_existing, check_forms, check_mapping, check_not_own};
use self::ping::test;
use self::secrets::rotate_secret;
use self::update::update;
use self::views::{
    WebhookCreationResponse, WebhookUpdateResponse, WebhookView, find, seal, view, visible_view,
};
use crate::App;
use crate::call::{Call, scope};

pub(super) fn resource() -> web::Resource<App> {
    web::Resource::new("webhooks")
        .post(
            "/api/webhooks/{id}/rotate-secret",
            rotate_secret,
            "Rotate a webhook's signing secret; the old one also signs for a while",
        )
        .extension()
        .post("/api/webhooks", create, "Create a webhook; its signing secret is shown only once")
        .get("/api/webhooks", list, "List webhooks")
        .get("/api/webhooks/{id}", read, "Get a webhook")
        .patch("/api/webhooks/{id}", update, "Update, enable or disable a webhook")
        // The URL of a chat's webhook is its secret.
        .uncompressed()
        .delete("/api/webhooks/{id}", delete, "Delete a webhook and its deliveries permanently")
        .post("/api/webhooks/{id}/test", test, "Send a signed ping and return the receiver's response")
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CreateWebhookRequest {
    /// HTTPS URL to which deliveries are posted.
    #[schemars(length(max = webhooks::URL_BYTES_MAX), extend("format" = "uri"))]
    url: String,
    /// Event types to deliver; `*` for all. Default: new submissions.
    #[serde(default)]
    #[schemars(length(max = webhooks::EVENTS_MAX), inner(regex(pattern = webhooks::EVENT_PATTERN)))]
    events: Vec<String>,
    /// Note for the owner.
    #[schemars(length(max = webhooks::DESCRIPTION_CHARS_MAX))]
    description: Option<String>,
    /// New names for answers, by field name.
    #[schemars(extend("maxProperties" = webhooks::MAPPED_MAX, "additionalProperties" = {"type": "string", "minLength": 1, "maxLength": webhooks::MAPPED_CHARS_MAX}))]
    field_mapping: Option<BTreeMap<String, String>>,
    /// Format of the body; default: the chat's if `url` is an address of Slack, Discord, Teams or Google Chat, else plain
    /// JSON.
    template: Option<Template>,
    /// Id of the chat that a Telegram bot posts to.
    #[schemars(regex(pattern = telegram::CHAT_ID_PATTERN))]
    telegram_chat_id: Option<String>,
    /// Forms to deliver events of; default: every form of the account.
    form_ids: Option<Vec<Uuid>>,
}

web::list_response!(WebhookListResponse { webhooks: WebhookView });

async fn create(
    call: Call<scope::WebhooksCreate>,
    State(app): State<App>,
    Json(request): Json<CreateWebhookRequest>,
) -> Result<Created<WebhookCreationResponse>, Problem> {
    let detected = request.template.is_none().then(|| Template::of_address(&request.url)).flatten();
    let template = request.template.or(detected).unwrap_or_default();
    let mut errors = webhooks::check(&request.settings());
    errors.extend(webhooks::check_chat(template, request.telegram_chat_id.as_deref()));
    errors.extend(check_address(&app, Some(&request.url)).filter(|_| errors.is_empty()));
    if !errors.is_empty() {
        return Err(Problem::validation(errors));
    }
    let secret = webhooks::make_secret(&app.rng.bytes());
    let new = NewWebhook {
        id: app.rng.uuid_v7(call.now),
        sealed_url: seal(&app, webhooks::URL_PURPOSE, &request.url),
        events: request.events,
        description: request.description,
        field_mapping: request.field_mapping.map(|mapping| json!(mapping)),
        form_ids: request.form_ids,
        sealed_secret: seal(&app, webhooks::SECRET_PURPOSE, &secret),
        template: template.as_str(),
        telegram_chat_id: request.telegram_chat_id,
        created_at: call.now,
    };
    let limit = call.limits().webhooks;
    let mut tx = store::begin(&app.db).await?;
    call.check_new(Resource::Webhooks)?;
    check_not_own(&app, &mut tx, Some(&request.url)).await?;
    check_forms(&call, &mut tx, new.form_ids.as_deref().filter(|ids| !ids.is_empty())).await?;
    if !usage::reserve(&mut tx, call.account_id, Counter::Webhooks, limit).await? {
        return Err(call.count_exceeded(&mut tx, Counter::Webhooks).await);
    }
    store::webhooks::insert_webhook(&mut tx, call.account_id, &new).await?;
    check_mapping(&mut tx, call.account_id, new.id).await?;
    let webhook = find(&call, &mut tx, new.id).await?;
    let webhook = view(&app, &call, webhook)?;
    app.commit(tx, vec![]).await?;

    let id = json!({"id": webhook.id});
    let webhook = WebhookUpdateResponse { webhook, template_detected: detected.is_some() };
    Ok(call
        .created(WebhookCreationResponse { webhook, secret })
        .next("try", "webhooks.test", id.clone(), "Send a signed ping and see the receiver's response")
        .next("check", "deliveries.list", id, "See the deliveries and the receiver's responses"))
}

web::list_query!(WebhooksQuery {
    /// Order by creation; default `oldest`.
    sort: Option<Sort>,
});

async fn list(
    call: Call<scope::WebhooksRead>,
    State(app): State<App>,
    Query(query): Query<WebhooksQuery>,
) -> Result<Reply<WebhookListResponse>, Problem> {
    let filter = call.list_filter(Resource::Webhooks, &query.pagination().sorted(query.sort))?;
    let mut conn = store::acquire(&app.db).await?;
    let found = store::webhooks::list_webhooks(&mut conn, call.account_id, &filter).await?;
    let page = PageInfo::sorted(&found.rows, found.has_more, filter.newest_first);
    let mut webhooks = Vec::with_capacity(found.rows.len());
    for row in found.rows {
        webhooks.push(visible_view(&app, &call, &mut conn, row).await?);
    }
    Ok(call.reply(WebhookListResponse { webhooks, page }).paginated())
}

async fn read(
    call: Call<scope::WebhooksRead>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
) -> Result<Reply<WebhookView>, Problem> {
    let mut conn = store::acquire(&app.db).await?;
    call.check_id(&mut conn, Resource::Webhooks, id).await?;
    let webhook = find(&call, &mut conn, id).await?;
    let webhook = visible_view(&app, &call, &mut conn, webhook).await?;
    Ok(call.reply(webhook))
}

async fn delete(
    call: Call<scope::WebhooksDelete>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
) -> Result<Reply<Deletion>, Problem> {
    let mut tx = store::begin(&app.db).await?;
    // Locks the usage counters first, as every transaction does: submissions with files lock them before they look
    // for webhooks.
    usage::lock(&mut tx, call.account_id).await?;
    call.check_id(&mut tx, Resource::Webhooks, id).await?;
    check_existing(&call, &find(&call, &mut tx, id).await?, &mut tx).await?;
    if !store::webhooks::delete_webhook(&mut tx, call.account_id, id).await? {
        return Err(Problem::not_found("webhook"));
    }
    usage::release(&mut tx, call.account_id, Counter::Webhooks).await?;
    app.commit(tx, vec![]).await?;
    Ok(call.reply(Deletion::now()))
}

impl CreateWebhookRequest {
    fn settings(&self) -> WebhookSettings<'_> {
        WebhookSettings {
            url: Some(&self.url),
            events: Some(&self.events),
            description: self.description.as_deref(),
            field_mapping: self.field_mapping.as_ref(),
            telegram_chat_id: self.telegram_chat_id.as_deref(),
        }
    }
}
