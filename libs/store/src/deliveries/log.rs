//! The delivery log of a webhook.

use chrono::{DateTime, Utc};
use domain::Cursor;
use sqlx::query_as;
use uuid::Uuid;

use crate::list_filter::collect_page;
use crate::{Conn, Error, ListPage};

/// A delivery with its last attempt.
#[derive(Debug, Clone)]
pub struct Delivery {
    pub id: Uuid,
    pub event: String,
    pub submission_id: Option<Uuid>,
    /// `pending`, `delivered`, `failed` or `canceled`.
    pub state: String,
    /// Attempts begun so far.
    pub attempts: i32,
    /// Meaningful while pending.
    pub next_attempt_at: DateTime<Utc>,
    /// When the event happened.
    pub created_at: DateTime<Utc>,
    /// When it was delivered or given up.
    pub finished_at: Option<DateTime<Utc>>,
    /// When the last attempt ended.
    pub attempted_at: Option<DateTime<Utc>>,
    /// Of the last response.
    pub status_code: Option<i32>,
    /// Of the last attempt.
    pub duration_ms: Option<i64>,
    /// Of the last attempt.
    pub error_class: Option<String>,
    /// The beginning of the last response.
    pub response_body: Option<String>,
}

/// Filter of a delivery list.
#[derive(Debug, Clone, Copy)]
pub struct DeliveryFilter<'a> {
    pub id: Option<Uuid>,
    pub state: Option<&'a str>,
    /// Only rows after this one.
    pub after: Option<Cursor>,
    pub limit: i64,
}

/// Returns a page of the deliveries of a webhook, newest first.
pub async fn list_deliveries(
    conn: &mut Conn,
    account_id: Uuid,
    webhook_id: Uuid,
    filter: &DeliveryFilter<'_>,
) -> Result<ListPage<Delivery>, Error> {
    let deliveries = query_as!(
        Delivery,
        r#"select d.id, d.event, d.submission_id, d.state, d.attempts, d.next_attempt_at, d.created_at, d.finished_at,
                  a.attempted_at as "attempted_at?", a.status_code as "status_code?",
                  a.duration_ms as "duration_ms?", a.error_class as "error_class?",
                  a.response_body as "response_body?"
           from deliveries d
           left join lateral (select * from delivery_attempts where delivery_id = d.id order by attempt desc limit 1) a
             on true
           where d.account_id = $1 and d.webhook_id = $2
             and ($3::uuid is null or d.id = $3) and ($4::text is null or d.state = $4)
             and ($5::timestamptz is null or (d.created_at, d.id) < ($5, $6))
           order by d.created_at desc, d.id desc limit $7"#,
        account_id,
        webhook_id,
        filter.id,
        filter.state,
        filter.after.map(|after| after.created_at),
        filter.after.map(|after| after.id).unwrap_or_default(),
        filter.limit.saturating_add(1),
    )
    .fetch(conn);
    collect_page(deliveries, filter.limit, |row| row.response_body.as_ref().map_or(0, String::len)).await
}

/// Returns a delivery of a webhook.
pub async fn find_delivery(
    conn: &mut Conn,
    account_id: Uuid,
    webhook_id: Uuid,
    id: Uuid,
) -> Result<Option<Delivery>, Error> {
    let filter = DeliveryFilter { id: Some(id), state: None, after: None, limit: 1 };
    Ok(list_deliveries(conn, account_id, webhook_id, &filter).await?.rows.pop())
}
