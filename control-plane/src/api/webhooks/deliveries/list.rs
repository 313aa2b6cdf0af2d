//! Lists of deliveries: of one webhook, and of the account.

use axum::extract::State;
use domain::FieldError;
use schemars::JsonSchema;
use serde::Deserialize;
use store::deliveries::{DeliveryFilter, list_deliveries};
use uuid::Uuid;
use web::{Path, Problem, Query, Reply};

use super::view::{DeliveryView, view};
use crate::App;
use crate::api::time_range::TimeRange;
use crate::api::webhooks::authorization::{check_deliveries, list_visible};
use crate::call::{Call, scope};

/// State of a delivery.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum DeliveryStatus {
    Pending,
    Delivered,
    Failed,
    Canceled,
}

impl DeliveryStatus {
    fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Delivered => "delivered",
            Self::Failed => "failed",
            Self::Canceled => "canceled",
        }
    }
}

/// Class of the last response's status; `none` if the last attempt got no response.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
pub(super) enum DeliveryStatusClass {
    #[serde(rename = "2xx")]
    Success,
    #[serde(rename = "3xx")]
    Redirect,
    #[serde(rename = "4xx")]
    ClientError,
    #[serde(rename = "5xx")]
    ServerError,
    #[serde(rename = "none")]
    NoResponse,
}

impl DeliveryStatusClass {
    fn first_digit(self) -> i32 {
        match self {
            Self::Success => 2,
            Self::Redirect => 3,
            Self::ClientError => 4,
            Self::ServerError => 5,
            Self::NoResponse => 0,
        }
    }
}

web::list_query!(pub(super) WebhookDeliveriesQuery {
    /// Only deliveries in this state.
    status: Option<DeliveryStatus>,
});

web::list_query!(pub(super) DeliveriesQuery {
    /// Only deliveries in this state.
    status: Option<DeliveryStatus>,
    /// Only deliveries to this webhook.
    webhook_id: Option<Uuid>,
    /// Only deliveries of events of this submission.
    submission_id: Option<Uuid>,
    /// Only deliveries with such a last attempt.
    status_class: Option<DeliveryStatusClass>,
    /// Only events from this day (UTC) or instant on.
    #[schemars(length(min = 10), extend("format" = "day-or-instant"))]
    from: Option<String>,
    /// Only events up to the end of this day (UTC), or before this instant.
    #[schemars(length(min = 10), extend("format" = "day-or-instant"))]
    to: Option<String>,
});

web::list_response!(pub(super) DeliveryListResponse { deliveries: DeliveryView });

pub(super) async fn list(
    call: Call<scope::DeliveriesRead>,
    State(app): State<App>,
    Path(webhook_id): Path<Uuid>,
    Query(query): Query<WebhookDeliveriesQuery>,
) -> Result<Reply<DeliveryListResponse>, Problem> {
    let (limit, after) = query.pagination().read()?;
    let mut conn = store::acquire(&app.db).await?;
    check_deliveries(&call, &mut conn, webhook_id).await?;
    let filter = DeliveryFilter {
        webhook_ids: Some(&[webhook_id]),
        state: query.status.map(DeliveryStatus::as_str),
        after,
        limit,
        ..DeliveryFilter::default()
    };
    let page = list_deliveries(&mut conn, call.account_id, &filter).await?;
    Ok(call.list_page(page, view))
}

/// A restricted key sees only deliveries to webhooks that it may see with their details.
pub(super) async fn list_all(
    call: Call<scope::DeliveriesRead>,
    State(app): State<App>,
    Query(query): Query<DeliveriesQuery>,
) -> Result<Reply<DeliveryListResponse>, Problem> {
    let (limit, after) = query.pagination().read()?;
    let mut errors: Vec<FieldError> = Vec::new();
    let TimeRange { from, until } = TimeRange::read(query.from, query.to, &mut errors);
    if !errors.is_empty() {
        return Err(Problem::validation(errors));
    }
    let mut conn = store::acquire(&app.db).await?;
    let webhook_ids = match query.webhook_id {
        Some(webhook_id) => {
            check_deliveries(&call, &mut conn, webhook_id).await?;
            Some(vec![webhook_id])
        }
        None => list_visible(&call, &mut conn).await?,
    };
    let filter = DeliveryFilter {
        webhook_ids: webhook_ids.as_deref(),
        submission_id: query.submission_id,
        state: query.status.map(DeliveryStatus::as_str),
        status_class: query.status_class.map(DeliveryStatusClass::first_digit),
        from,
        until,
        after,
        limit,
    };
    let page = list_deliveries(&mut conn, call.account_id, &filter).await?;
    Ok(call.list_page(page, view))
}
