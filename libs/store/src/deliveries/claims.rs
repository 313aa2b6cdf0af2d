//! Claims due deliveries, many in one statement: it finds them, counts the attempts, leases them, and returns all that
//! sending needs.
//!
//! Claims are made per webhook, so that one webhook's backlog does not delay the others.
//!
//! Commits asynchronously (`synchronous_commit` off for this transaction only): a crash of Postgres may lose the claim,
//! and the delivery is retried after its lease, as after any crash.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use domain::webhooks::FieldLabel;
use serde_json::Value;
use sqlx::{query, query_scalar};
use uuid::Uuid;

use crate::{Conn, Error};

/// A claimed delivery with everything an attempt needs.
#[derive(Debug)]
pub struct Attempt {
    /// Also the `webhook-id` header.
    pub delivery_id: Uuid,
    pub account_id: Uuid,
    pub webhook_id: Uuid,
    /// The first attempt is 1. Attempts are counted when they begin.
    pub attempt: i32,
    /// Attempts before the schedule was restarted manually.
    pub attempts_before: i32,
    /// The event's name.
    pub event: String,
    /// The body, before `field_mapping`.
    pub payload: Value,
    /// The fields of the event's form, in its order; empty until they are read ([`super::read_field_labels`]).
    pub fields: Arc<[FieldLabel]>,
    /// W3C trace context of the request that caused the event.
    pub traceparent: Option<String>,
    /// Position in a chain of deliveries.
    pub depth: i16,
    /// The encrypted URL.
    pub sealed_url: Vec<u8>,
    /// The encrypted signing secret.
    pub sealed_secret: Vec<u8>,
    /// The previous encrypted signing secret while it is valid.
    pub sealed_previous_secret: Option<Vec<u8>>,
    /// Renames of submission fields.
    pub field_mapping: Option<Value>,
    /// Format of the messages, by the template's name.
    pub template: String,
    pub telegram_chat_id: Option<String>,
    /// When the delivery became due.
    pub due_at: DateTime<Utc>,
    /// When the webhook's deliveries began to fail.
    pub failing_since: Option<DateTime<Utc>>,
}

/// The lease of a claim.
#[derive(Debug, Clone, Copy)]
pub struct Lease {
    pub now: DateTime<Utc>,
    /// When the lease expires.
    pub until: DateTime<Utc>,
}

/// How many attempts at a webhook may begin now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClaimLimit {
    pub webhook_id: Uuid,
    pub limit: i32,
}

/// Claims the deliveries that have been due longest, at most as many as each webhook's limit. A webhook that yields
/// fewer has no more due deliveries. Skips locked rows, so concurrent runners never claim the same one.
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
                     d.payload, d.traceparent, d.depth, w.sealed_url, w.sealed_secret,
                     case when w.previous_secret_until > $1 then w.sealed_previous_secret end as sealed_previous_secret,
                     w.field_mapping, w.template, w.telegram_chat_id, w.failing_since, d.next_attempt_at as due_at",
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
        fields: Arc::default(),
        traceparent: row.traceparent,
        depth: row.depth,
        sealed_url: row.sealed_url,
        sealed_secret: row.sealed_secret,
        sealed_previous_secret: row.sealed_previous_secret,
        field_mapping: row.field_mapping,
        template: row.template,
        telegram_chat_id: row.telegram_chat_id,
        due_at: row.due_at,
        failing_since: row.failing_since,
    });
    Ok(attempts.collect())
}

/// Returns the active webhooks that have due deliveries. Skips from webhook to webhook in the index, so its cost does
/// not depend on the number of deliveries.
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

/// Undoes claims of attempts that were never sent.
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
