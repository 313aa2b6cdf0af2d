//! Rotates a webhook's signing secret without downtime: for a while, deliveries carry signatures of both secrets. The
//! specification shows no endpoint for it; this is an extension.

use axum::extract::State;
use chrono::TimeDelta;
use domain::FieldError;
use domain::scopes::Resource;
use domain::webhooks::{self, PREVIOUS_SECONDS_MAX};
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;
use web::{OptionalJson, Path, Problem, Reply};

use super::authorization::check_existing;
use super::views::{WebhookSecretResponse, find, seal, view};
use crate::App;
use crate::call::{Call, scope};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct RotateWebhookSecretRequest {
    /// How long deliveries are also signed with the previous secret, at most a week; default one day. Use 0 if it has
    /// leaked.
    #[serde(default, deserialize_with = "web::whole_number_or_null")]
    #[schemars(range(min = 0, max = PREVIOUS_SECONDS_MAX))]
    keep_previous_for_seconds: Option<i64>,
}

pub(super) async fn rotate_secret(
    call: Call<scope::WebhooksUpdate>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
    OptionalJson(rotation): OptionalJson<RotateWebhookSecretRequest>,
) -> Result<Reply<WebhookSecretResponse>, Problem> {
    call.require_fresh_sign_in(&app)?;
    let previous_ttl = match rotation.and_then(|rotation| rotation.keep_previous_for_seconds) {
        Some(seconds) if !(0..=PREVIOUS_SECONDS_MAX).contains(&seconds) => {
            let message = format!("keepPreviousForSeconds must be 0 to {PREVIOUS_SECONDS_MAX}");
            let error = FieldError::new("keepPreviousForSeconds", "range", message);
            return Err(Problem::validation(vec![error]));
        }
        Some(seconds) => TimeDelta::seconds(seconds),
        None => TimeDelta::from_std(app.webhooks.previous_secret_ttl).unwrap_or(TimeDelta::days(1)),
    };
    let secret = webhooks::make_secret(&app.rng.bytes());
    let sealed = seal(&app, webhooks::SECRET_PURPOSE, &secret);
    let mut tx = store::begin(&app.db).await?;
    call.check_id(&mut tx, Resource::Webhooks, id).await?;
    check_existing(&call, &find(&call, &mut tx, id).await?, &mut tx).await?;
    let until = call.now + previous_ttl;
    store::webhooks::update_secret(&mut tx, call.account_id, id, &sealed, until, call.now).await?;
    let webhook = find(&call, &mut tx, id).await?;
    call.commit(&app, tx, vec![]).await?;
    let webhook = view(&app, &call, webhook)?;
    Ok(call.reply(WebhookSecretResponse { webhook, secret }))
}
