//! Webhooks: signed notifications of submissions.

pub(super) mod authorization;
pub(super) mod deliveries;
pub(super) mod insert;
mod ping;
mod secrets;
mod update;
mod views;

use std::collections::BTreeMap;

use axum::extract::State;
use domain::chat::telegram;
use domain::scopes::Resource;
use domain::webhooks::{self, Template};
use schemars::JsonSchema;
use serde::Deserialize;
use store::usage::{self, Counter};
use uuid::Uuid;
use web::{Created, Deletion, Json, PageInfo, Path, Problem, Query, Reply, Sort};

use self::authorization::check_existing;
use self::insert::{InsertedWebhook, URL, WebhookInput};
use self::ping::test;
use self::secrets::rotate_secret;
use self::update::update;
use self::views::{WebhookCreationResponse, WebhookUpdateResponse, WebhookView, find, view, visible_view};
use crate::App;
use crate::call::{Call, scope};
use crate::next_steps::After;

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
    let input = WebhookInput {
        url_field: URL,
        url: request.url,
        events: request.events,
        description: request.description,
        field_mapping: request.field_mapping,
        template: request.template.or(detected).unwrap_or_default(),
        telegram_chat_id: request.telegram_chat_id,
        form_ids: request.form_ids,
    };
    let errors = input.check(&app);
    if !errors.is_empty() {
        return Err(Problem::validation(errors));
    }
    let mut tx = store::begin(&app.db).await?;
    let InsertedWebhook { webhook, secret } = input.insert(&call, &app, &mut tx).await?;
    call.set_changed(Resource::Webhooks, webhook.id, webhook.description.as_deref().unwrap_or_default());
    let webhook = view(&app, &call, webhook)?;
    call.commit(&app, tx, vec![]).await?;

    let next = call.suggestions(&app, After::Webhook { id: webhook.id }).await;
    let webhook = WebhookUpdateResponse { webhook, template_detected: detected.is_some() };
    Ok(call.created(WebhookCreationResponse { webhook, secret }).with_next(next))
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
    call.commit(&app, tx, vec![]).await?;
    Ok(call.reply(Deletion::now()))
}
