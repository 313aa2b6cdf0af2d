//! Webhooks: have submissions sent to you, signed.

use std::collections::BTreeMap;

use axum::extract::State;
use chrono::{DateTime, Utc};
use domain::scopes::Resource;
use domain::{Cursor, webhooks};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use store::usage::{self, Counter};
use store::webhooks::{NewWebhook, Webhook};
use uuid::Uuid;
use web::{Created, Json, Listed, Paging, Path, Problem, Query, Reply};

use crate::App;
use crate::call::{Call, scope};

/// The endpoints.
pub(super) fn resource() -> web::Resource<App> {
    web::Resource::new("webhooks")
        .post("/api/webhooks", create, "Create a webhook; its signing secret is shown this once")
        .get("/api/webhooks", list, "List webhooks")
        .get("/api/webhooks/{id}", read, "Read a webhook")
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WantedWebhook {
    /// Where deliveries are posted; https.
    #[schemars(length(max = webhooks::URL_BYTES_MAX), extend("format" = "uri"))]
    url: String,
    /// What it is told of; new submissions unless told otherwise, `*` for everything.
    #[serde(default)]
    #[schemars(inner(regex(pattern = webhooks::EVENT_PATTERN)))]
    events: Vec<String>,
    #[schemars(length(max = webhooks::DESCRIPTION_CHARS_MAX))]
    description: Option<String>,
    /// New names for answers.
    field_mapping: Option<BTreeMap<String, String>>,
    /// The forms it is told of; every form of the account if absent.
    form_ids: Option<Vec<Uuid>>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct WebhookView {
    id: Uuid,
    url: String,
    events: Vec<String>,
    description: Option<String>,
    field_mapping: Option<Value>,
    /// Whether it is told of every form.
    all_forms: bool,
    form_ids: Vec<Uuid>,
    is_active: bool,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct WebhookWithSecret {
    #[serde(flatten)]
    webhook: WebhookView,
    /// Verify deliveries with it, by any Standard Webhooks library. It is shown this once.
    secret: String,
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
    let complaints = webhooks::check(&wanted.url, &wanted.events, wanted.description.as_deref());
    if !complaints.is_empty() {
        return Err(Problem::validation(complaints));
    }
    let secret = webhooks::make_secret(&app.rng.bytes());
    let seal = |purpose: &str, text: &str| app.master_key.seal(purpose, app.rng.bytes(), text.as_bytes());
    let new = NewWebhook {
        id: app.rng.uuid_v7(call.now),
        sealed_url: seal(webhooks::URL_PURPOSE, &wanted.url),
        events: wanted.events,
        description: wanted.description,
        field_mapping: wanted.field_mapping.map(|mapping| json!(mapping)),
        form_ids: wanted.form_ids,
        sealed_secret: seal(webhooks::SECRET_PURPOSE, &secret),
        created_at: call.now,
    };
    let limit = call.limits().webhooks;
    let mut tx = store::begin(&app.db).await?;
    check_forms(&call, &mut tx, new.form_ids.as_deref()).await?;
    if !usage::take(&mut tx, call.account_id, Counter::Webhooks, limit).await? {
        return Err(call.quota_exceeded("webhooks", limit));
    }
    store::webhooks::insert_webhook(&mut tx, call.account_id, &new).await?;
    let webhook = store::webhooks::find_webhook(&mut tx, call.account_id, new.id).await?;
    let webhook = view(&app, webhook.ok_or_else(|| Problem::not_found("webhook"))?)?;
    app.commit(tx, vec![]).await?;

    let log = json!({"id": webhook.id});
    Ok(call.created(WebhookWithSecret { webhook, secret }).next(
        "check",
        "deliveries.list",
        log,
        "See what was delivered and how the receiver answered",
    ))
}

async fn list(
    call: Call<scope::WebhooksRead>,
    State(app): State<App>,
    Query(paging): Query<Paging>,
) -> Result<Reply<Webhooks>, Problem> {
    let part = call.part(Resource::Webhooks, &paging)?;
    let mut conn = store::acquire(&app.db).await?;
    let mut rows = store::webhooks::list_webhooks(&mut conn, call.account_id, &part).await?;
    let listed = Listed::cut(&mut rows, part.limit, |row| Cursor { created_at: row.created_at, id: row.id });
    let webhooks = rows.into_iter().map(|row| view(&app, row)).collect::<Result<_, _>>()?;
    Ok(call.reply(Webhooks { webhooks, listed: listed.clone() }).part(listed))
}

async fn read(
    call: Call<scope::WebhooksRead>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
) -> Result<Reply<WebhookView>, Problem> {
    let mut conn = store::acquire(&app.db).await?;
    call.check_id(&mut conn, Resource::Webhooks, id).await?;
    let webhook = store::webhooks::find_webhook(&mut conn, call.account_id, id).await?;
    Ok(call.reply(view(&app, webhook.ok_or_else(|| Problem::not_found("webhook"))?)?))
}

/// A caller who is kept to a folder or to listed forms makes no webhook that hears of more.
async fn check_forms(
    call: &Call<scope::WebhooksCreate>,
    conn: &mut store::Conn,
    form_ids: Option<&[Uuid]>,
) -> Result<(), Problem> {
    call.check_new(Resource::Webhooks)?;
    match form_ids {
        Some(ids) if !ids.is_empty() => call.check_ids(conn, Resource::Forms, ids).await,
        _ => {
            call.check_whole_account(Resource::Webhooks)?;
            call.check_new(Resource::Forms)
        }
    }
}

fn view(app: &App, webhook: Webhook) -> Result<WebhookView, Problem> {
    let url = app.master_key.open(webhooks::URL_PURPOSE, &webhook.sealed_url)?;
    Ok(WebhookView {
        id: webhook.id,
        url: String::from_utf8_lossy(&url).into_owned(),
        events: webhook.events,
        description: webhook.description,
        field_mapping: webhook.field_mapping,
        all_forms: webhook.all_forms,
        form_ids: webhook.form_ids,
        is_active: webhook.is_active,
        created_at: webhook.created_at,
        updated_at: webhook.updated_at,
    })
}
