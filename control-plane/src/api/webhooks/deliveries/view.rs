//! A delivery in responses.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::Serialize;
use store::deliveries::Delivery;
use uuid::Uuid;

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in crate::api) struct DeliveryView {
    /// Also sent as the `webhook-id` header, the same for every attempt.
    id: Uuid,
    /// The webhook that it is sent to.
    webhook_id: Uuid,
    /// Type of the event, such as `submission.created`.
    event: String,
    /// The submission that the event is about; null for other events.
    submission_id: Option<Uuid>,
    /// `pending`, `delivered`, `failed`, or `canceled` if the webhook was disabled before delivery.
    status: String,
    /// Whether it was delivered.
    success: bool,
    /// Number of attempts so far.
    attempts: i32,
    /// When the next attempt is due; null if none is.
    next_attempt_at: Option<DateTime<Utc>>,
    /// When the last attempt ended; null before the first.
    attempted_at: Option<DateTime<Utc>>,
    /// HTTP status of the receiver's last response; null without one.
    status_code: Option<i32>,
    /// Duration of the last attempt in milliseconds, until the response.
    response_time_ms: Option<i64>,
    /// Error class of the last attempt: `http_status`, `timeout`, `dns`, `connect`, `tls`, `protocol`,
    /// `refused_target`, `own_address` (this service itself), `interrupted` or `unwritable`.
    error: Option<String>,
    /// First 16 KB of the receiver's last response.
    response_body: Option<String>,
    created_at: DateTime<Utc>,
    /// When it was delivered or finally failed; null while pending.
    finished_at: Option<DateTime<Utc>>,
}

pub(in crate::api) fn view(delivery: Delivery) -> DeliveryView {
    DeliveryView {
        id: delivery.id,
        webhook_id: delivery.webhook_id,
        event: delivery.event,
        submission_id: delivery.submission_id,
        success: delivery.state == "delivered",
        next_attempt_at: (delivery.state == "pending").then_some(delivery.next_attempt_at),
        status: delivery.state,
        attempts: delivery.attempts,
        attempted_at: delivery.attempted_at,
        status_code: delivery.status_code,
        response_time_ms: delivery.duration_ms,
        error: delivery.error_class,
        response_body: delivery.response_body,
        created_at: delivery.created_at,
        finished_at: delivery.finished_at,
    }
}
