//! Beginning attempts, many in one statement: it finds what is due, counts the attempt, keeps everybody else away
//! until the lease is over, and brings all that sending needs.
//!
//! They are asked for webhook by webhook, so that no backlog stands before anybody else's deliveries.
//!
//! A claim need not survive a crash of Postgres, so its commit doesn't wait for the disk (`synchronous_commit`, for
//! that transaction alone): what is forgotten is only that an attempt was begun, and a delivery of which nothing else
//! is known is sent again, as after any crash.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::{query, query_scalar};
use uuid::Uuid;

use crate::{Conn, Error};

/// A delivery under way: everything an attempt needs.
#[derive(Debug)]
pub struct Attempt {
    /// The delivery, and the `webhook-id`.
    pub delivery_id: Uuid,
    /// Whose it is.
    pub account_id: Uuid,
    /// Whom it tells.
    pub webhook_id: Uuid,
    /// Which attempt this is; the first is 1. It is counted when it begins, however it ends.
    pub attempt: i32,
    /// Attempts made before the schedule was begun anew by hand.
    pub attempts_before: i32,
    /// What happened.
    pub event: String,
    /// The body, before `field_mapping`.
    pub payload: Value,
    /// W3C trace context of whoever caused it.
    pub traceparent: Option<String>,
    /// The webhook's address, sealed.
    pub sealed_url: Vec<u8>,
    /// Its signing secret, sealed.
    pub sealed_secret: Vec<u8>,
    /// The one before, sealed, while it is still good.
    pub sealed_previous_secret: Option<Vec<u8>>,
    /// New names for answers.
    pub field_mapping: Option<Value>,
    /// For whom it writes, by the template's word.
    pub template: String,
    /// The Telegram chat it writes to.
    pub telegram_chat_id: Option<String>,
    /// Since when nothing has been delivered to it although it was tried.
    pub failing_since: Option<DateTime<Utc>>,
}

/// The bounds of a claim.
#[derive(Debug, Clone, Copy)]
pub struct Lease {
    /// Now.
    pub now: DateTime<Utc>,
    /// Until when nobody else begins the same.
    pub until: DateTime<Utc>,
}

/// How many more attempts at a webhook may be begun now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClaimLimit {
    /// The webhook.
    pub webhook_id: Uuid,
    /// That many.
    pub limit: i32,
}

/// Begins attempts of deliveries that have been due longest, at most as many as each of these webhooks has places. A
/// webhook that brings fewer has no more that are due.
pub async fn claim(conn: &mut Conn, lease: &Lease, limits: &[ClaimLimit]) -> Result<Vec<Attempt>, Error> {
    let rows = query!(
        "with due as materialized (
               select d.id from unnest($3::uuid[], $4::int[]) as r (webhook_id, places)
               cross join lateral (
                   select id from deliveries
                   where webhook_id = (select id from webhooks where id = r.webhook_id and is_active) and state = 'pending' and next_attempt_at <= $1
                     and (leased_until is null or leased_until <= $1)
                     and (select set_config('synchronous_commit', 'off', true)) = 'off'
                   order by next_attempt_at limit r.places for no key update skip locked
               ) d
           )
           update deliveries d
           set attempts = d.attempts + 1, leased_until = $2
           from due j, webhooks w where d.id = j.id and w.id = d.webhook_id
           returning d.id as delivery_id, d.account_id, d.webhook_id, d.attempts as attempt, d.attempts_before, d.event,
                     d.payload, d.traceparent, w.sealed_url, w.sealed_secret,
                     case when w.previous_secret_until > $1 then w.sealed_previous_secret end as sealed_previous_secret,
                     w.field_mapping, w.template, w.telegram_chat_id, w.failing_since",
        lease.now,
        lease.until,
        &limits.iter().map(|limit| limit.webhook_id).collect::<Vec<_>>(),
        &limits.iter().map(|limit| limit.limit).collect::<Vec<_>>(),
    )
    .fetch_all(conn)
    .await?;
    let attempts = rows.into_iter().map(|row| Attempt {
        delivery_id: row.delivery_id,
        account_id: row.account_id,
        webhook_id: row.webhook_id,
        attempt: row.attempt,
        attempts_before: row.attempts_before,
        event: row.event,
        payload: row.payload,
        traceparent: row.traceparent,
        sealed_url: row.sealed_url,
        sealed_secret: row.sealed_secret,
        sealed_previous_secret: row.sealed_previous_secret,
        field_mapping: row.field_mapping,
        template: row.template,
        telegram_chat_id: row.telegram_chat_id,
        failing_since: row.failing_since,
    });
    Ok(attempts.collect())
}

/// The active webhooks that have deliveries which are due. Steps from webhook to webhook, however many deliveries each
/// has.
pub async fn list_due(conn: &mut Conn, now: DateTime<Utc>) -> Result<Vec<Uuid>, Error> {
    let due = query_scalar!(
        r#"with recursive step (webhook_id) as (
               (select webhook_id from deliveries where state = 'pending' order by webhook_id limit 1)
               union all
               select (select d.webhook_id from deliveries d
                       where d.state = 'pending' and d.webhook_id > step.webhook_id order by d.webhook_id limit 1)
               from step where step.webhook_id is not null
           )
           select w.id from step join webhooks w on w.id = step.webhook_id and w.is_active
           where exists (select from deliveries d where d.webhook_id = w.id and d.state = 'pending'
                                                   and d.next_attempt_at <= $1
                                                   and (d.leased_until is null or d.leased_until <= $1))"#,
        now,
    )
    .fetch_all(conn)
    .await?;
    Ok(due)
}

/// Takes back attempts that were begun and never sent.
pub async fn release_attempts(conn: &mut Conn, attempts: &[Attempt]) -> Result<(), Error> {
    let (ids, numbers): (Vec<Uuid>, Vec<i32>) =
        attempts.iter().map(|attempt| (attempt.delivery_id, attempt.attempt)).unzip();
    query!(
        "update deliveries d set attempts = d.attempts - 1, leased_until = null
         from unnest($1::uuid[], $2::int[]) as t (id, attempt)
         where d.id = t.id and d.attempts = t.attempt and d.state = 'pending'",
        &ids,
        &numbers,
    )
    .execute(conn)
    .await?;
    Ok(())
}
