//! The delivery log: of one webhook, of several, or of a submission.

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
    pub webhook_id: Uuid,
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
#[derive(Debug, Clone, Copy, Default)]
pub struct DeliveryFilter<'a> {
    /// Only deliveries to these webhooks.
    pub webhook_ids: Option<&'a [Uuid]>,
    /// Only deliveries of events of this submission.
    pub submission_id: Option<Uuid>,
    pub state: Option<&'a str>,
    /// The first digit of the last response's status; 0 for a last attempt without a response.
    pub status_class: Option<i32>,
    /// Only events from this time on.
    pub from: Option<DateTime<Utc>>,
    /// Only events before this time.
    pub until: Option<DateTime<Utc>>,
    /// Only rows after this one.
    pub after: Option<Cursor>,
    pub limit: i64,
}

/// Selects deliveries with their last attempts from the rows `$from`, which are called `d`.
macro_rules! deliveries {
    ($from:literal $(+ $more:literal)* $(, $argument:expr)*) => {
        query_as!(
            Delivery,
            r#"select d.id as "id!", d.webhook_id as "webhook_id!", d.event as "event!", d.submission_id,
                      d.state as "state!", d.attempts as "attempts!", d.next_attempt_at as "next_attempt_at!",
                      d.created_at as "created_at!", d.finished_at, d.attempted_at as "attempted_at?",
                      d.status_code as "status_code?", d.duration_ms as "duration_ms?",
                      d.error_class as "error_class?", d.response_body as "response_body?"
               from "# + $from $(+ $more)*,
            $($argument),*
        )
    };
}

/// Selects the rows of [`deliveries`] that `$condition` and a filter allow, newest first.
macro_rules! filtered {
    ($from:literal, $condition:literal, $end:literal, $account_id:expr, $filter:expr, $submission_id:expr) => {
        deliveries!(
            $from
                + "(select d.*, a.attempted_at, a.status_code, a.duration_ms, a.error_class, a.response_body
                    from deliveries d
                    left join lateral (select * from delivery_attempts where delivery_id = d.id
                                       order by attempt desc limit 1) a on true
                    where "
                + $condition
                + "   and ($4::text is null or d.state = $4)
                      and ($5::int is null or (a.attempt is not null and coalesce(a.status_code / 100, 0) = $5))
                      and ($6::timestamptz is null or d.created_at >= $6)
                      and ($7::timestamptz is null or d.created_at < $7)
                      and ($8::timestamptz is null or (d.created_at, d.id) < ($8, $9))
                    order by d.created_at desc, d.id desc limit $10) d "
                + $end
                + " order by d.created_at desc, d.id desc limit $10",
            $account_id,
            $filter.webhook_ids,
            $submission_id,
            $filter.state,
            $filter.status_class,
            $filter.from,
            $filter.until,
            $filter.after.map(|after| after.created_at),
            $filter.after.map(|after| after.id).unwrap_or_default(),
            $filter.limit.saturating_add(1)
        )
    };
}

/// As [`filtered`], of the account's webhooks.
macro_rules! of_webhooks {
    ($condition:literal, $account_id:expr, $filter:expr) => {
        filtered!(
            "webhooks w cross join lateral ",
            $condition,
            "where w.account_id = $1 and ($2::uuid[] is null or w.id = any($2))",
            $account_id,
            $filter,
            None::<Uuid>
        )
    };
}

/// The class of the statuses that deliver.
const SUCCESS: i32 = 2;

/// Returns a page of deliveries, newest first. Each webhook's newest ones are read from its index and merged, so that no index
/// of the account's deliveries has to be written for every event.
pub async fn list_deliveries(
    conn: &mut Conn,
    account_id: Uuid,
    filter: &DeliveryFilter<'_>,
) -> Result<ListPage<Delivery>, Error> {
    let bytes_of = |row: &Delivery| row.response_body.as_ref().map_or(0, String::len);
    let Some(submission_id) = filter.submission_id else {
        // A receiver that works has thousands of delivered rows for each other one. Without a 2xx a delivery is not delivered,
        // so the two partial indexes of the other states have it.
        let is_unanswered = filter.status_class.is_some_and(|class| class != SUCCESS);
        return if is_unanswered {
            let deliveries = of_webhooks!(
                "d.webhook_id = w.id and $3::uuid is null
                     and (d.state in ('failed', 'canceled') or d.state = 'pending')",
                account_id,
                filter
            );
            collect_page(deliveries.fetch(conn), filter.limit, bytes_of).await
        } else {
            let deliveries = of_webhooks!("d.webhook_id = w.id and $3::uuid is null", account_id, filter);
            collect_page(deliveries.fetch(conn), filter.limit, bytes_of).await
        };
    };
    let deliveries = filtered!(
        "",
        "d.account_id = $1 and d.submission_id = $3 and ($2::uuid[] is null or d.webhook_id = any($2))",
        "",
        account_id,
        filter,
        submission_id
    );
    collect_page(deliveries.fetch(conn), filter.limit, bytes_of).await
}

/// Returns a delivery of the account.
pub async fn find_delivery(conn: &mut Conn, account_id: Uuid, id: Uuid) -> Result<Option<Delivery>, Error> {
    let delivery = deliveries!(
        "(select d.*, a.attempted_at, a.status_code, a.duration_ms, a.error_class, a.response_body
          from deliveries d
          left join lateral (select * from delivery_attempts where delivery_id = d.id
                             order by attempt desc limit 1) a on true
          where d.account_id = $1 and d.id = $2) d",
        account_id,
        id
    );
    Ok(delivery.fetch_optional(conn).await?)
}
