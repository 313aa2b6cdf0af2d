//! One delivery: every attempt, and the request of the last one.

use axum::extract::State;
use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::Serialize;
use store::deliveries::{LoggedAttempt, find_delivery, list_attempts};
use uuid::Uuid;
use web::{Path, Problem, Reply};

use super::request::{DeliveryRequestNote, DeliveryRequestView, build};
use super::view::{DeliveryView, view};
use crate::App;
use crate::api::webhooks::authorization::check_deliveries;
use crate::call::{Call, scope};

/// Most attempts in a response. A schedule has ten; retries on request add more.
const ATTEMPTS_MAX: i64 = 50;

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct DeliveryDetailResponse {
    #[serde(flatten)]
    delivery: DeliveryView,
    /// Its attempts, oldest first: the last 50 of those that ended.
    attempt_log: Vec<DeliveryAttemptView>,
    /// The request of the last attempt as it was sent; null if it is not known.
    request: Option<DeliveryRequestView>,
    /// Why `request` is null.
    request_note: Option<DeliveryRequestNote>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct DeliveryAttemptView {
    /// Number of the attempt, from 1 on.
    attempt: i32,
    /// When it ended.
    attempted_at: DateTime<Utc>,
    /// Its duration in milliseconds, until the response.
    response_time_ms: i64,
    /// HTTP status of the response; null without one.
    status_code: Option<i32>,
    /// Error class, as `error` of the delivery; null if it was delivered.
    error: Option<String>,
    /// First 16 KB of the response; null without one.
    response_body: Option<String>,
}

pub(super) async fn read(
    call: Call<scope::DeliveriesRead>,
    State(app): State<App>,
    Path(id): Path<Uuid>,
) -> Result<Reply<DeliveryDetailResponse>, Problem> {
    let mut conn = store::acquire(&app.db).await?;
    let delivery = find_delivery(&mut conn, call.account_id, id).await?;
    let delivery = delivery.ok_or_else(|| Problem::not_found("delivery"))?;
    check_deliveries(&call, &mut conn, delivery.webhook_id).await?;
    let mut attempts = list_attempts(&mut conn, call.account_id, id, ATTEMPTS_MAX).await?;
    let (request, request_note) = match build(&app, &mut conn, call.account_id, id, attempts.first()).await? {
        Ok(request) => (Some(request), None),
        Err(note) => (None, Some(note)),
    };
    attempts.reverse();
    let attempt_log = attempts.into_iter().map(DeliveryAttemptView::from).collect();
    Ok(call.reply(DeliveryDetailResponse { delivery: view(delivery), attempt_log, request, request_note }))
}

impl From<LoggedAttempt> for DeliveryAttemptView {
    fn from(attempt: LoggedAttempt) -> Self {
        Self {
            attempt: attempt.attempt,
            attempted_at: attempt.attempted_at,
            response_time_ms: attempt.duration_ms,
            status_code: attempt.status_code,
            error: attempt.error_class,
            response_body: attempt.response_body,
        }
    }
}
