//! Deliveries that an owner requests: test pings and retries. They are due at once by Postgres' clock, which job-runners
//! claim them by.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::query;
use uuid::Uuid;

use crate::{Conn, Error};

/// Inserts a test delivery that is due now. Returns an error if the webhook does not belong to the account.
pub async fn insert_ping(
    conn: &mut Conn,
    account_id: Uuid,
    webhook_id: Uuid,
    id: Uuid,
    payload: &Value,
    traceparent: Option<&str>,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    query!(
        "insert into deliveries (id, webhook_id, account_id, event, payload, next_attempt_at, created_at, traceparent)
         values ($1, (select id from webhooks where account_id = $2 and id = $3), $2, $4, $5, now(), $6, $7)",
        id,
        account_id,
        webhook_id,
        domain::webhooks::PING,
        payload,
        now,
        traceparent,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Makes a delivery due now and restarts its schedule. Has no effect on a delivery with an attempt in progress. Returns
/// `false` if the webhook has no such delivery.
pub async fn retry_delivery(
    conn: &mut Conn,
    account_id: Uuid,
    webhook_id: Uuid,
    id: Uuid,
) -> Result<bool, Error> {
    let found = query!(
        "select id from deliveries where account_id = $1 and webhook_id = $2 and id = $3",
        account_id,
        webhook_id,
        id
    )
    .fetch_optional(&mut *conn)
    .await?;
    query!(
        "update deliveries set state = 'pending', next_attempt_at = now(), attempts_before = attempts, finished_at = null
         where account_id = $1 and webhook_id = $2 and id = $3
           and (state <> 'pending' or leased_until is null or leased_until <= now())",
        account_id,
        webhook_id,
        id,
    )
    .execute(conn)
    .await?;
    Ok(found.is_some())
}

/// Makes up to `limit` failed or canceled deliveries due now that finished at `since` or later, earliest first, except
/// pings. Others are unchanged, so calling it twice sends nothing twice. Returns how many.
pub async fn retry_failed(
    conn: &mut Conn,
    account_id: Uuid,
    webhook_id: Uuid,
    since: DateTime<Utc>,
    limit: i64,
) -> Result<u64, Error> {
    let retried = query!(
        "update deliveries set state = 'pending', next_attempt_at = now(), attempts_before = attempts, finished_at = null
         where id = any(array(
             select id from deliveries
             where account_id = $1 and webhook_id = $2 and state in ('failed', 'canceled') and finished_at >= $3
               and event <> $5
             order by finished_at limit $4 for update))",
        account_id,
        webhook_id,
        since,
        limit,
        domain::webhooks::PING,
    )
    .execute(conn)
    .await?;
    Ok(retried.rows_affected())
}

/// Cancels the pending deliveries of a webhook.
pub async fn cancel_pending(
    conn: &mut Conn,
    account_id: Uuid,
    webhook_id: Uuid,
    now: DateTime<Utc>,
) -> Result<u64, Error> {
    let canceled = query!(
        "update deliveries set state = 'canceled', finished_at = $3
         where id = any(array(
             select id from deliveries where account_id = $1 and webhook_id = $2 and state = 'pending'
             order by id for no key update)) and state = 'pending'",
        account_id,
        webhook_id,
        now,
    )
    .execute(conn)
    .await?;
    Ok(canceled.rows_affected())
}
