//! Deliveries: attempts to send events to a webhook, the receiver's responses, and manual retries.

mod list;
mod read;
mod request;
mod view;

use axum::extract::State;
use chrono::{DateTime, TimeDelta, Utc};
use contract::Signal;
use domain::{FieldError, timestamps};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::deliveries;
use uuid::Uuid;
use web::{Json, Path, Problem, Reply};

use self::list::{list, list_all};
use self::read::read;
pub(in crate::api) use self::view::{DeliveryView, view};
use super::authorization::{check_deliveries, check_is_active};
use crate::App;
use crate::call::{Call, scope};

pub(crate) fn resource() -> web::Resource<App> {
    web::Resource::new("deliveries")
        .post("/api/webhooks/{id}/deliveries/{deliveryId}/retry", retry, "Retry a delivery now")
        .post("/api/webhooks/{id}/retry", retry_failed, "Retry all deliveries that failed since a time")
        .get("/api/deliveries", list_all, "List the deliveries of all webhooks, newest first")
        .get("/api/deliveries/{deliveryId}", read, "Get a delivery with its attempts and its request")
        // The URL of a chat's webhook is its secret.
        .uncompressed()
        .extension()
        .get("/api/webhooks/{id}/deliveries", list, "List a webhook's deliveries, newest first")
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RetryDeliveriesRequest {
    /// Retries deliveries that failed at this time or later; at most 14 days ago.
    #[schemars(regex(pattern = timestamps::PATTERN))]
    since: DateTime<Utc>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct DeliveryRetriesResponse {
    /// Number of deliveries scheduled again.
    retried: u64,
    /// Whether more deliveries remain for another call.
    has_more: bool,
}

/// Sends delivered ones again too; receivers can recognize them by their id.
async fn retry(
    call: Call<scope::DeliveriesCreate>,
    State(app): State<App>,
    Path((webhook_id, id)): Path<(Uuid, Uuid)>,
) -> Result<Reply<DeliveryView>, Problem> {
    let mut tx = store::begin(&app.db).await?;
    let webhook = check_deliveries(&call, &mut tx, webhook_id).await?;
    if !deliveries::retry_delivery(&mut tx, call.account_id, webhook_id, id).await? {
        return Err(Problem::not_found("delivery"));
    }
    check_is_active(&webhook)?;
    let delivery = deliveries::find_delivery(&mut tx, call.account_id, id).await?;
    let delivery = delivery.ok_or_else(|| Problem::not_found("delivery"))?;
    call.commit_and_send(&app, tx, vec![Signal::DeliveriesDue { webhook_ids: vec![webhook_id] }]).await?;
    Ok(call.reply(view(delivery)))
}

/// The job-runner's sweep claims the deliveries, as many at a time as its limits allow.
async fn retry_failed(
    call: Call<scope::DeliveriesCreate>,
    State(app): State<App>,
    Path(webhook_id): Path<Uuid>,
    Json(RetryDeliveriesRequest { since }): Json<RetryDeliveriesRequest>,
) -> Result<Reply<DeliveryRetriesResponse>, Problem> {
    let max_age = TimeDelta::from_std(app.webhooks.retry_max_age).unwrap_or(TimeDelta::days(14));
    let is_too_early = timestamps::check("since", Some(since)).is_some() || since < call.now - max_age;
    if is_too_early {
        let message = format!("since must be at limit {} hours ago", max_age.num_hours());
        return Err(Problem::validation(vec![FieldError::new("since", "range", message)]));
    }
    let limit = app.webhooks.max_retries_per_call;
    let mut tx = store::begin(&app.db).await?;
    check_is_active(&check_deliveries(&call, &mut tx, webhook_id).await?)?;
    let retried = deliveries::retry_failed(&mut tx, call.account_id, webhook_id, since, limit).await?;
    call.commit(&app, tx, vec![]).await?;
    Ok(call.reply(DeliveryRetriesResponse { retried, has_more: retried == limit.unsigned_abs() }))
}
