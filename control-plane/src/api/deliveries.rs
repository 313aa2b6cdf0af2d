//! Deliveries: what was sent to a webhook, and how the receiver answered.

use axum::extract::State;
use chrono::{DateTime, Utc};
use domain::Cursor;
use domain::scopes::Resource;
use schemars::JsonSchema;
use serde::Serialize;
use store::deliveries::Delivery;
use uuid::Uuid;
use web::{Listed, Paging, Path, Problem, Query, Reply};

use crate::App;
use crate::call::{Call, scope};

/// The endpoints.
pub(super) fn resource() -> web::Resource<App> {
    web::Resource::new("deliveries").get(
        "/api/webhooks/{id}/deliveries",
        list,
        "List a webhook's deliveries, newest first",
    )
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct DeliveryView {
    /// Also the `webhook-id` header, the same on every attempt.
    id: Uuid,
    event: String,
    /// `pending`, `delivered` or `failed`.
    status: String,
    success: bool,
    /// Attempts so far.
    attempts: i32,
    /// When the next attempt is due; null when none is.
    next_attempt_at: Option<DateTime<Utc>>,
    /// What the receiver answered last.
    status_code: Option<i32>,
    /// How long its last answer took.
    response_time_ms: Option<i64>,
    /// What went wrong last, as a stable word.
    error: Option<String>,
    /// The beginning of its last answer.
    response_body: Option<String>,
    created_at: DateTime<Utc>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Deliveries {
    deliveries: Vec<DeliveryView>,
    #[serde(flatten)]
    listed: Listed,
}

async fn list(
    call: Call<scope::DeliveriesRead>,
    State(app): State<App>,
    Path(webhook_id): Path<Uuid>,
    Query(paging): Query<Paging>,
) -> Result<Reply<Deliveries>, Problem> {
    let (limit, after) = paging.read()?;
    let mut conn = store::acquire(&app.db).await?;
    call.check_id(&mut conn, Resource::Webhooks, webhook_id).await?;
    let mut rows =
        store::deliveries::list_deliveries(&mut conn, call.account_id, webhook_id, after, limit + 1).await?;
    let listed = Listed::cut(&mut rows, limit, |row| Cursor { created_at: row.created_at, id: row.id });
    Ok(call
        .reply(Deliveries { deliveries: rows.into_iter().map(view).collect(), listed: listed.clone() })
        .part(listed))
}

fn view(delivery: Delivery) -> DeliveryView {
    DeliveryView {
        id: delivery.id,
        event: delivery.event,
        success: delivery.state == "delivered",
        next_attempt_at: (delivery.state == "pending").then_some(delivery.next_attempt_at),
        status: delivery.state,
        attempts: delivery.attempts,
        status_code: delivery.status_code,
        response_time_ms: delivery.duration_ms,
        error: delivery.error_class,
        response_body: delivery.response_body,
        created_at: delivery.created_at,
    }
}
