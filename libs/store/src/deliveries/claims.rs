//! Beginning attempts, many in one statement: it finds what is due, counts the attempt, keeps everybody else away
//! until the lease is over, and brings all that sending needs.
//!
//! A claim need not survive a crash of Postgres, so its commit doesn't wait for the disk (`synchronous_commit`, for
//! that transaction alone): what is forgotten is only that an attempt was begun, and a delivery of which nothing else
//! is known is sent again, as after any crash.

use chrono::{DateTime, Utc};
use sqlx::{query, query_scalar};
use uuid::Uuid;

use super::Attempt;
use crate::{Conn, Error};

/// The bounds of a claim.
#[derive(Debug, Clone, Copy)]
pub struct Claim {
    /// Now.
    pub now: DateTime<Utc>,
    /// Until when nobody else begins the same.
    pub leased_until: DateTime<Utc>,
}

/// How many more attempts at a webhook may be begun now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    /// The webhook.
    pub webhook_id: Uuid,
    /// That many.
    pub places: i32,
    /// It hangs: it shares [`Places::of_slow`] with the others that do.
    pub is_slow: bool,
    /// It has answered quickly so far: what it has no place for may stand before others for a moment.
    pub is_quick: bool,
}

/// How many more attempts may be begun now.
#[derive(Debug, Clone, Copy)]
pub struct Places<'a> {
    /// In all.
    pub all: i64,
    /// Of those, at webhooks that hang.
    pub of_slow: i64,
    /// At single webhooks.
    pub rooms: &'a [Room],
    /// At each webhook that is not among `rooms`.
    pub of_others: i32,
}

/// What a look at the due deliveries brought.
#[derive(Debug, Default)]
pub struct Claimed {
    /// Attempts that have begun: to be sent at once.
    pub attempts: Vec<Attempt>,
    /// Webhooks whose deliveries stood before others and were parked: asked for by [`claim_parked`]. If there are any,
    /// another look brings more.
    pub crowded: Vec<Uuid>,
}

/// An attempt of a row that brings all columns of one.
macro_rules! attempt {
    ($row:expr, $payload:expr) => {
        Attempt {
            delivery_id: $row.delivery_id,
            account_id: $row.account_id,
            webhook_id: $row.webhook_id,
            attempt: $row.attempt,
            attempts_before: $row.attempts_before,
            event: $row.event,
            payload: $payload,
            traceparent: $row.traceparent,
            sealed_url: $row.sealed_url,
            sealed_secret: $row.sealed_secret,
            sealed_previous_secret: $row.sealed_previous_secret,
            field_mapping: $row.field_mapping,
            template: $row.template,
            telegram_chat_id: $row.telegram_chat_id,
            failing_since: $row.failing_since,
        }
    };
}

/// Looks at the deliveries that have been due longest and begins an attempt of each, as far as there are places. Those for
/// which their webhook has no place are parked, out of the way of those that come after them; but if it is quick, only
/// when a look sees nothing but the first thousand, as parking costs what sending does. The thousand stands in the
/// statement, so that one plan serves every call.
///
/// # Errors
/// The database's.
pub async fn claim_due(conn: &mut Conn, claim: &Claim, places: &Places<'_>) -> Result<Claimed, Error> {
    let (webhooks, rooms) = split(places.rooms);
    let are_slow: Vec<bool> = places.rooms.iter().map(|room| room.is_slow).collect();
    let are_quick: Vec<bool> = places.rooms.iter().map(|room| room.is_quick).collect();
    let rows = query!(
        r#"with seen as materialized (
               select id, webhook_id, next_attempt_at from deliveries
               where state = 'pending' and not is_parked and next_attempt_at <= $1
                 and (leased_until is null or leased_until <= $1)
                 and (select set_config('synchronous_commit', 'off', true)) = 'off'
               order by next_attempt_at limit 1000
           ), placed as (
               select *, row_number() over (partition by webhook_id order by next_attempt_at, id) as place from seen
           ), judged as (
               select p.id, p.next_attempt_at, w.is_active, coalesce(r.is_slow, false) as is_slow,
                      coalesce(r.is_quick, false) as is_quick,
                      w.is_active and p.place <= coalesce(r.places, $6) as fits
               from placed p join webhooks w on w.id = p.webhook_id
               left join unnest($3::uuid[], $4::int[], $5::bool[], $9::bool[]) as r (webhook_id, places, is_slow, is_quick)
                 on r.webhook_id = p.webhook_id
           ), shared as (
               select id, next_attempt_at, is_active, is_quick,
                      fits and (not is_slow or row_number() over (partition by fits, is_slow
                                                                  order by next_attempt_at, id) <= $8) as fits
               from judged
           ), ranked as (
               select id, is_active, is_quick, fits,
                      fits and row_number() over (partition by fits order by next_attempt_at, id) <= $7 as goes
               from shared
           ), held as materialized (
               select d.id, r.goes from ranked r join deliveries d on d.id = r.id
               where (r.goes or not r.is_active
                      or not r.fits and (not r.is_quick or (select count(*) from seen) >= 1000))
                 and d.state = 'pending' and not d.is_parked and (d.leased_until is null or d.leased_until <= $1)
               for no key update of d skip locked
           )
           update deliveries d
           set attempts = d.attempts + h.goes::int, leased_until = case when h.goes then $2::timestamptz end,
               is_parked = not h.goes
           from held h, webhooks w where d.id = h.id and w.id = d.webhook_id
           returning h.goes as "goes!", d.id as delivery_id, d.account_id, d.webhook_id, d.attempts as attempt,
                     d.attempts_before, d.event, case when h.goes then d.payload end as payload, d.traceparent,
                     w.sealed_url, w.sealed_secret,
                     case when w.previous_secret_until > $1 then w.sealed_previous_secret end as sealed_previous_secret,
                     w.field_mapping, w.template, w.telegram_chat_id, w.failing_since"#,
        claim.now,
        claim.leased_until,
        &webhooks,
        &rooms,
        &are_slow,
        places.of_others,
        places.all,
        places.of_slow,
        &are_quick,
    )
    .fetch_all(conn)
    .await?;
    let mut claimed = Claimed::default();
    for row in rows {
        if row.goes {
            let payload = row.payload.unwrap_or_default();
            claimed.attempts.push(attempt!(row, payload));
        } else if !claimed.crowded.contains(&row.webhook_id) {
            claimed.crowded.push(row.webhook_id);
        }
    }
    Ok(claimed)
}

/// Begins attempts of parked deliveries, at most as many as each webhook has places.
///
/// # Errors
/// The database's.
pub async fn claim_parked(conn: &mut Conn, claim: &Claim, rooms: &[Room]) -> Result<Vec<Attempt>, Error> {
    let (webhooks, places) = split(rooms);
    let rows = query!(
        "with due as materialized (
               select d.id from unnest($3::uuid[], $4::int[]) as r (webhook_id, places)
               join webhooks w on w.id = r.webhook_id and w.is_active
               cross join lateral (
                   select id from deliveries
                   where webhook_id = r.webhook_id and state = 'pending' and is_parked and next_attempt_at <= $1
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
        claim.now,
        claim.leased_until,
        &webhooks,
        &places,
    )
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().map(|row| attempt!(row, row.payload)).collect())
}

/// The active webhooks that have parked deliveries which are due. Steps from webhook to webhook, however many
/// deliveries each has.
///
/// # Errors
/// The database's.
pub async fn list_crowded(conn: &mut Conn, now: DateTime<Utc>) -> Result<Vec<Uuid>, Error> {
    let crowded = query_scalar!(
        r#"with recursive step (webhook_id) as (
               (select webhook_id from deliveries where state = 'pending' and is_parked order by webhook_id limit 1)
               union all
               select (select d.webhook_id from deliveries d
                       where d.state = 'pending' and d.is_parked and d.webhook_id > step.webhook_id
                       order by d.webhook_id limit 1)
               from step where step.webhook_id is not null
           )
           select w.id from step join webhooks w on w.id = step.webhook_id and w.is_active
           where exists (select from deliveries d where d.webhook_id = w.id and d.state = 'pending' and d.is_parked
                                                   and d.next_attempt_at <= $1
                                                   and (d.leased_until is null or d.leased_until <= $1))"#,
        now,
    )
    .fetch_all(conn)
    .await?;
    Ok(crowded)
}

/// Takes back attempts that were begun and never sent.
///
/// # Errors
/// The database's.
pub async fn give_back(conn: &mut Conn, attempts: &[Attempt]) -> Result<(), Error> {
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

fn split(rooms: &[Room]) -> (Vec<Uuid>, Vec<i32>) {
    rooms.iter().map(|room| (room.webhook_id, room.places)).unzip()
}
