//! Retries of failed deliveries over webhooks and accounts, by the operator of the installation. They are due at once by
//! Postgres' clock, which job-runners claim them by.

use chrono::{DateTime, Utc};
use sqlx::{query, query_as};
use uuid::Uuid;

use crate::{Conn, Error};

/// Failed deliveries, except pings.
#[derive(Debug, Clone, Copy)]
pub struct FailedFilter {
    /// `None` for all accounts.
    pub account_id: Option<Uuid>,
    /// `None` for all webhooks.
    pub webhook_id: Option<Uuid>,
    /// When they finished, at the earliest.
    pub since: DateTime<Utc>,
    /// When they finished, at the latest: those that fail again during a retry are not retried twice.
    pub until: DateTime<Utc>,
    /// Also those that the webhook's owner gave up, or that ended with their webhook.
    pub includes_canceled: bool,
}

/// How many deliveries a filter finds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedDeliveries {
    /// Of active webhooks.
    pub retryable: i64,
    /// Their webhooks.
    pub webhooks: i64,
    /// Their accounts.
    pub accounts: i64,
    /// When the first of them finished.
    pub oldest: Option<DateTime<Utc>>,
    /// Of webhooks that are disabled or that belong to a suspended account: they are not retried.
    pub inactive: i64,
}

/// Counts the deliveries that the filter finds.
pub async fn count_failed(conn: &mut Conn, filter: &FailedFilter) -> Result<FailedDeliveries, Error> {
    let counted = query_as!(
        FailedDeliveries,
        r#"select count(*) filter (where is_retryable) as "retryable!",
                  count(distinct webhook_id) filter (where is_retryable) as "webhooks!",
                  count(distinct account_id) filter (where is_retryable) as "accounts!",
                  min(finished_at) filter (where is_retryable) as oldest,
                  count(*) filter (where not is_retryable) as "inactive!"
           from (select d.webhook_id, d.account_id, d.finished_at, w.is_active and a.suspended_at is null as is_retryable
                 from deliveries d join webhooks w on w.id = d.webhook_id join accounts a on a.id = w.account_id
                 where d.state in ('failed', 'canceled') and (d.state = 'failed' or $6)
                   and d.finished_at between $1 and $2 and d.event <> $3
                   and ($4::uuid is null or d.webhook_id = $4) and ($5::uuid is null or d.account_id = $5)) as found"#,
        filter.since,
        filter.until,
        domain::webhooks::PING,
        filter.webhook_id,
        filter.account_id,
        filter.includes_canceled,
    );
    Ok(counted.fetch_one(conn).await?)
}

/// Makes up to `limit` of these deliveries due now, if their webhooks are active, earliest first. Returns how many.
pub async fn retry_all_failed(conn: &mut Conn, filter: &FailedFilter, limit: i64) -> Result<u64, Error> {
    let retried = query!(
        "update deliveries set state = 'pending', next_attempt_at = now(), attempts_before = attempts, finished_at = null
         where id = any(array(
             select d.id
             from deliveries d join webhooks w on w.id = d.webhook_id join accounts a on a.id = w.account_id
             where d.state in ('failed', 'canceled') and (d.state = 'failed' or $7)
               and d.finished_at between $1 and $2 and d.event <> $3
               and ($4::uuid is null or d.webhook_id = $4) and ($5::uuid is null or d.account_id = $5)
               and w.is_active and a.suspended_at is null
             order by d.finished_at limit $6 for update of d))",
        filter.since,
        filter.until,
        domain::webhooks::PING,
        filter.webhook_id,
        filter.account_id,
        limit,
        filter.includes_canceled,
    )
    .execute(conn)
    .await?;
    Ok(retried.rows_affected())
}
