//! Deliveries: what was sent to a webhook, how the receiver answered, and sending it again.

use axum::extract::State;
use chrono::{DateTime, TimeDelta, Utc};
use contract::Signal;
use domain::scopes::Resource;
use domain::{Complaint, Cursor, instants};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::deliveries::{self, Delivery, Wanted};
use uuid::Uuid;
use web::{Json, Listed, Paging, Path, Problem, Query, Reply};

use super::webhook_tests::check_is_active;
use crate::App;
use crate::call::{Call, scope};

/// The endpoints.
pub(super) fn resource() -> web::Resource<App> {
    web::Resource::new("deliveries")
        .post("/api/webhooks/{id}/deliveries/{deliveryId}/retry", retry, "Send a delivery again, now")
        .post("/api/webhooks/{id}/retry", retry_failed, "Send again all that came to nothing since a time")
        .extension()
        .get("/api/webhooks/{id}/deliveries", list, "List a webhook's deliveries, newest first")
}

/// A state a delivery is in.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Status {
    Pending,
    Delivered,
    Failed,
    Canceled,
}

impl Status {
    fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Delivered => "delivered",
            Self::Failed => "failed",
            Self::Canceled => "canceled",
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct DeliveriesQuery {
    /// Only deliveries in this state.
    status: Option<Status>,
    #[schemars(range(min = 1, max = 100))]
    limit: Option<i64>,
    #[schemars(extend("format" = "cursor"))]
    cursor: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct DeliveryView {
    /// Also the `webhook-id` header, the same on every attempt.
    id: Uuid,
    event: String,
    /// The submission, if it is about one.
    submission_id: Option<Uuid>,
    /// `pending`, `delivered`, `failed`, or `canceled`: the webhook was switched off before it arrived.
    status: String,
    success: bool,
    /// Attempts so far.
    attempts: i32,
    /// When the next attempt is due; null when none is.
    next_attempt_at: Option<DateTime<Utc>>,
    /// When the last attempt ended.
    attempted_at: Option<DateTime<Utc>>,
    /// What the receiver answered last.
    status_code: Option<i32>,
    /// How long its last answer took.
    response_time_ms: Option<i64>,
    /// What went wrong last, as a stable word: `http_status`, `timeout`, `dns`, `connect`, `tls`, `protocol`,
    /// `refused_target`, `interrupted` or `unwritable`.
    error: Option<String>,
    /// The first 16 KB of its last answer.
    response_body: Option<String>,
    created_at: DateTime<Utc>,
    /// When it was delivered, or came to nothing.
    finished_at: Option<DateTime<Utc>>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Deliveries {
    deliveries: Vec<DeliveryView>,
    #[serde(flatten)]
    listed: Listed,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Since {
    /// Deliveries that came to nothing at this time or later; it may lie 14 days back.
    #[schemars(regex(pattern = instants::PATTERN))]
    since: DateTime<Utc>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Retried {
    /// How many deliveries are under way again.
    retried: u64,
    /// Whether there are more, which another call takes up.
    has_more: bool,
}

async fn list(
    call: Call<scope::DeliveriesRead>,
    State(app): State<App>,
    Path(webhook_id): Path<Uuid>,
    Query(query): Query<DeliveriesQuery>,
) -> Result<Reply<Deliveries>, Problem> {
    let (limit, after) = Paging::new(query.limit, query.cursor).read()?;
    let wanted = Wanted { id: None, state: query.status.map(Status::word), after, limit: limit + 1 };
    let mut conn = store::acquire(&app.db).await?;
    call.check_id(&mut conn, Resource::Webhooks, webhook_id).await?;
    let mut rows = deliveries::list_deliveries(&mut conn, call.account_id, webhook_id, &wanted).await?;
    let listed = Listed::cut(&mut rows, limit, |row| Cursor { created_at: row.created_at, id: row.id });
    Ok(call
        .reply(Deliveries { deliveries: rows.into_iter().map(view).collect(), listed: listed.clone() })
        .part(listed))
}

/// One that was delivered is sent again as well: receivers know it by its id.
async fn retry(
    call: Call<scope::DeliveriesCreate>,
    State(app): State<App>,
    Path((webhook_id, id)): Path<(Uuid, Uuid)>,
) -> Result<Reply<DeliveryView>, Problem> {
    let mut tx = store::begin(&app.db).await?;
    call.check_id(&mut tx, Resource::Webhooks, webhook_id).await?;
    if !deliveries::retry_delivery(&mut tx, call.account_id, webhook_id, id, call.now).await? {
        return Err(Problem::not_found("delivery"));
    }
    check_is_active(&call, &mut tx, webhook_id).await?;
    let delivery = deliveries::find_delivery(&mut tx, call.account_id, webhook_id, id).await?;
    let delivery = delivery.ok_or_else(|| Problem::not_found("delivery"))?;
    app.commit_and_send(tx, vec![Signal::DeliveriesDue { webhook_ids: vec![webhook_id] }]).await?;
    Ok(call.reply(view(delivery)))
}

/// They are found by the job-runner's sweep, which takes up as many at a time as there is room for.
async fn retry_failed(
    call: Call<scope::DeliveriesCreate>,
    State(app): State<App>,
    Path(webhook_id): Path<Uuid>,
    Json(Since { since }): Json<Since>,
) -> Result<Reply<Retried>, Problem> {
    let within = TimeDelta::from_std(app.webhooks.retry_max_age).unwrap_or(TimeDelta::days(14));
    let is_too_early = instants::check("since", Some(since)).is_some() || since < call.now - within;
    if is_too_early {
        let message = format!("since may lie at most {} hours back", within.num_hours());
        return Err(Problem::validation(vec![Complaint::new("since", "range", message)]));
    }
    let most = app.webhooks.max_retries_per_call;
    let mut tx = store::begin(&app.db).await?;
    call.check_id(&mut tx, Resource::Webhooks, webhook_id).await?;
    check_is_active(&call, &mut tx, webhook_id).await?;
    let retried =
        deliveries::retry_failed(&mut tx, call.account_id, webhook_id, since, call.now, most).await?;
    app.commit(tx, vec![]).await?;
    Ok(call.reply(Retried { retried, has_more: retried == most.unsigned_abs() }))
}

pub(super) fn view(delivery: Delivery) -> DeliveryView {
    DeliveryView {
        id: delivery.id,
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
