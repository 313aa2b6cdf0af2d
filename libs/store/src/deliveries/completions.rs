//! Stores the outcomes of attempts, many in one statement. Commits synchronously, so that a crash of Postgres does not
//! cause a second delivery.

use chrono::{DateTime, Utc};
use domain::webhooks::RequestDigest;
use sqlx::query_scalar;
use uuid::Uuid;

use crate::{Conn, Error};

/// The outcome of an attempt.
#[derive(Debug, Clone)]
pub struct AttemptOutcome {
    /// `None` without a response.
    pub status_code: Option<i32>,
    pub duration_ms: i64,
    /// Stable identifier of the error; `None` for a 2xx response.
    pub error_class: Option<&'static str>,
    /// The beginning of the response body.
    pub response_body: Option<String>,
    /// When it ended.
    pub at: DateTime<Utc>,
    /// When to retry; `None` if it was delivered or is given up.
    pub next_attempt_at: Option<DateTime<Utc>>,
    /// `None` if nothing was sent.
    pub request: Option<SentRequest>,
}

/// The request of an attempt, as far as it is stored: the rest is built again from the delivery and its webhook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SentRequest {
    /// The time that the signature covers, in whole seconds.
    pub signed_at: DateTime<Utc>,
    /// Tells whether a request that was built again is the same.
    pub digest: RequestDigest,
}

/// Stores outcomes, each with its delivery's id and attempt number, and releases the leases. An attempt that was
/// superseded by a later one is only logged. One that was canceled but arrived all the same becomes delivered. Outcomes
/// of deleted deliveries are dropped. Returns the deliveries that another transaction has locked, for example to delete
/// them: their outcomes are not stored yet. Waiting for their locks while holding others could deadlock.
///
/// The states are read from the locked rows: reading them from the table made Postgres, before it had statistics, scan
/// all pending deliveries. On an error no outcome is stored.
pub async fn complete_attempts(
    conn: &mut Conn,
    ended: &[(Uuid, i32, AttemptOutcome)],
) -> Result<Vec<Uuid>, Error> {
    let column = |pick: fn(&AttemptOutcome) -> &'static str| -> Vec<&'static str> {
        ended.iter().map(|(_, _, outcome)| pick(outcome)).collect()
    };
    let outcomes = || ended.iter().map(|(_, _, outcome)| outcome);
    let requests = || outcomes().map(|outcome| outcome.request);
    let locked = query_scalar!(
        r#"with ended as materialized (
             select * from unnest($1::uuid[], $2::int[], $3::text[], $4::int[], $5::bigint[], $6::text[], $7::text[],
                                  $8::timestamptz[], $9::timestamptz[], $10::timestamptz[], $11::bytea[])
                 as e (id, attempt, state, status_code, duration_ms, error_class, response_body, at, next_attempt_at,
                       signed_at, request_digest)
         ), held as materialized (
             select id, attempts, state from deliveries where id = any($1) for no key update skip locked
         ), logged as (
             insert into delivery_attempts (delivery_id, attempt, status_code, duration_ms, error_class, response_body,
                                            attempted_at, signed_at, request_digest)
             select id, attempt, status_code, duration_ms, error_class, response_body, at, signed_at, request_digest
             from ended join held using (id)
             on conflict do nothing
         ), deciding as materialized (
             select e.* from ended e join held h using (id)
             where h.attempts = e.attempt
               and (h.state = 'pending' or (h.state = 'canceled' and e.state = 'delivered'))
         ), completed as (
             update deliveries d
             set state = e.state, leased_until = null,
                 next_attempt_at = coalesce(e.next_attempt_at, d.next_attempt_at),
                 finished_at = case when e.state = 'pending' then null else e.at end
             from deciding e where d.id = e.id
         )
         select id as "id!" from deliveries where id = any($1) and id not in (select id from held)"#,
        &ended.iter().map(|(id, ..)| *id).collect::<Vec<_>>(),
        &ended.iter().map(|(_, attempt, _)| *attempt).collect::<Vec<_>>(),
        &column(state) as &[&str],
        &outcomes().map(|outcome| outcome.status_code).collect::<Vec<_>>() as &[Option<i32>],
        &outcomes().map(|outcome| outcome.duration_ms).collect::<Vec<_>>(),
        &outcomes().map(|outcome| outcome.error_class).collect::<Vec<_>>() as &[Option<&str>],
        &outcomes().map(|outcome| outcome.response_body.as_deref()).collect::<Vec<_>>() as &[Option<&str>],
        &outcomes().map(|outcome| outcome.at).collect::<Vec<DateTime<Utc>>>(),
        &outcomes().map(|outcome| outcome.next_attempt_at).collect::<Vec<_>>() as &[Option<DateTime<Utc>>],
        &requests().map(|sent| sent.map(|sent| sent.signed_at)).collect::<Vec<_>>() as &[Option<DateTime<Utc>>],
        &requests().map(|sent| sent.map(|sent| sent.digest.to_vec())).collect::<Vec<_>>() as &[Option<Vec<u8>>],
    )
    .fetch_all(conn)
    .await?;
    Ok(locked)
}

fn state(outcome: &AttemptOutcome) -> &'static str {
    match (outcome.error_class, outcome.next_attempt_at) {
        (None, _) => "delivered",
        (Some(_), Some(_)) => "pending",
        (Some(_), None) => "failed",
    }
}
