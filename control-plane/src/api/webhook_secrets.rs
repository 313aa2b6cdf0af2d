//! A webhook's signing secret is replaced without a gap: for a while both sign. The specification shows no way to do
//! so; this endpoint is ours.

use axum::extract::State;
use chrono::TimeDelta;
use domain::Complaint;
use domain::scopes::Resource;
use domain::webhooks::{self, PREVIOUS_SECONDS_MAX};
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;
use web::{OptionalJson, Path, Problem, Reply};

use super::webhook_reach::check_heard;
use super::webhook_views::{WebhookWithSecret, find, seal, view};
use crate::App;
use crate::call::{Call, scope};

/// The endpoints.
pub(super) fn resource() -> web::Resource<App> {
    web::Resource::new("webhooks")
        .post(
            "/api/webhooks/{id}/rotate-secret",
            rotate_secret,
            "Replace a webhook's signing secret; the new one is shown this once, the old one signs beside it for a day",
        )
        .extension()
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Rotation {
    /// How long the old secret signs as well, at most a week; a day unless told otherwise. 0 for one that has leaked.
    #[serde(default, deserialize_with = "web::whole_number_or_null")]
    #[schemars(range(min = 0, max = PREVIOUS_SECONDS_MAX))]
    keep_previous_for_seconds: Option<i64>,
}

async fn rotate_secret(
    call: Call<scope::WebhooksUpdate>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
    OptionalJson(rotation): OptionalJson<Rotation>,
) -> Result<Reply<WebhookWithSecret>, Problem> {
    let kept_for = match rotation.and_then(|rotation| rotation.keep_previous_for_seconds) {
        Some(seconds) if !(0..=PREVIOUS_SECONDS_MAX).contains(&seconds) => {
            let message = format!("keepPreviousForSeconds must be 0 to {PREVIOUS_SECONDS_MAX}");
            let complaint = Complaint::new("keepPreviousForSeconds", "range", message);
            return Err(Problem::validation(vec![complaint]));
        }
        Some(seconds) => TimeDelta::seconds(seconds),
        None => TimeDelta::from_std(app.webhooks.previous_secret_ttl).unwrap_or(TimeDelta::days(1)),
    };
    let secret = webhooks::make_secret(&app.rng.bytes());
    let sealed = seal(&app, webhooks::SECRET_PURPOSE, &secret);
    let mut tx = store::begin(&app.db).await?;
    call.check_id(&mut tx, Resource::Webhooks, id).await?;
    check_heard(&call, &find(&call, &mut tx, id).await?, &mut tx).await?;
    let until = call.now + kept_for;
    store::webhooks::update_secret(&mut tx, call.account_id, id, &sealed, until, call.now).await?;
    let webhook = find(&call, &mut tx, id).await?;
    app.commit(tx, vec![]).await?;
    let webhook = view(&app, &call, webhook)?;
    Ok(call.reply(WebhookWithSecret { webhook, secret }))
}
