//! Idempotent calls. Each has one row, which is leased to the process that executes it and then stores the response.
//!
//! The lease exists for crashes: when it expires, another attempt may run. A living process renews it, so it may be
//! shorter than the longest call.

use chrono::{DateTime, Utc};
use sqlx::{query, query_scalar};
use uuid::Uuid;

use crate::{Conn, Error};

/// One attempt at a call.
#[derive(Debug, Clone, Copy)]
pub struct Attempt {
    /// Identifies the call.
    pub fingerprint: [u8; 32],
    /// Distinguishes this attempt from others at the same call.
    pub id: Uuid,
}

/// The state of a call that a client sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// This attempt may execute it.
    Granted,
    /// Another attempt is executing it.
    InFlight,
    /// It was executed; holds the encrypted response.
    Completed(Vec<u8>),
}

/// Claims a call for this attempt until `leased_until`, unless another attempt holds it or its response is newer than
/// `answered_after`.
pub async fn claim(
    conn: &mut Conn,
    account_id: Uuid,
    attempt: Attempt,
    now: DateTime<Utc>,
    leased_until: DateTime<Utc>,
    answered_after: DateTime<Utc>,
) -> Result<Claim, Error> {
    let inserted = query!(
        "insert into idempotent_calls (account_id, fingerprint, attempt, leased_until, created_at)
         values ($1, $2, $3, $4, $5) on conflict do nothing",
        account_id,
        &attempt.fingerprint,
        attempt.id,
        leased_until,
        now,
    )
    .execute(&mut *conn)
    .await?;
    if inserted.rows_affected() > 0 {
        return Ok(Claim::Granted);
    }
    // Most retries find a call that is completed or in flight; finding that out must not write.
    let found = query!(
        r#"select answer, case when answer is null then leased_until <= $3 else created_at <= $4 end as "free!"
           from idempotent_calls where account_id = $1 and fingerprint = $2"#,
        account_id,
        &attempt.fingerprint,
        now,
        answered_after,
    )
    .fetch_optional(&mut *conn)
    .await?;
    // Deleted in between: the client's next attempt can claim it.
    let Some(found) = found else { return Ok(Claim::InFlight) };
    if !found.free {
        return Ok(found.answer.map_or(Claim::InFlight, Claim::Completed));
    }
    let taken_over = query!(
        "update idempotent_calls set attempt = $3, leased_until = $4, created_at = $5, answer = null
         where account_id = $1 and fingerprint = $2
           and case when answer is null then leased_until <= $5 else created_at <= $6 end",
        account_id,
        &attempt.fingerprint,
        attempt.id,
        leased_until,
        now,
        answered_after,
    )
    .execute(conn)
    .await?;
    Ok(if taken_over.rows_affected() > 0 { Claim::Granted } else { Claim::InFlight })
}

/// Extends a claim. Returns `false` if it was lost.
pub async fn renew(
    conn: &mut Conn,
    account_id: Uuid,
    attempt: Attempt,
    leased_until: DateTime<Utc>,
) -> Result<bool, Error> {
    let renewed = query!(
        "update idempotent_calls set leased_until = $4
         where account_id = $1 and fingerprint = $2 and attempt = $3 and answer is null",
        account_id,
        &attempt.fingerprint,
        attempt.id,
        leased_until,
    )
    .execute(conn)
    .await?;
    Ok(renewed.rows_affected() > 0)
}

/// Stores the response of an executed call. Returns `false` if the claim was lost.
pub async fn store_response(
    conn: &mut Conn,
    account_id: Uuid,
    attempt: Attempt,
    sealed: &[u8],
) -> Result<bool, Error> {
    let kept = query!(
        "update idempotent_calls set answer = $4
         where account_id = $1 and fingerprint = $2 and attempt = $3 and answer is null",
        account_id,
        &attempt.fingerprint,
        attempt.id,
        sealed,
    )
    .execute(conn)
    .await?;
    Ok(kept.rows_affected() > 0)
}

/// Gives up a claim, so that the call can be retried at once.
pub async fn delete_claim(conn: &mut Conn, account_id: Uuid, attempt: Attempt) -> Result<(), Error> {
    query!(
        "delete from idempotent_calls
         where account_id = $1 and fingerprint = $2 and attempt = $3 and answer is null",
        account_id,
        &attempt.fingerprint,
        attempt.id,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Locks a call for this transaction, which executes it and stores its response ([`insert_response`]). No other attempt
/// is granted the call meanwhile, and a rollback leaves no trace. Only responses newer than `answered_after` count.
pub async fn lock_call(
    conn: &mut Conn,
    account_id: Uuid,
    fingerprint: &[u8; 32],
    answered_after: DateTime<Utc>,
) -> Result<Claim, Error> {
    let is_locked =
        query_scalar!(r#"select pg_try_advisory_xact_lock($1) as "is_locked!""#, lock_key(fingerprint))
            .fetch_one(&mut *conn)
            .await?;
    if !is_locked {
        return Ok(Claim::InFlight);
    }
    // A separate statement sees what the previous holder of the lock committed.
    let answer = find_response(conn, account_id, fingerprint, answered_after).await?;
    Ok(answer.map_or(Claim::Granted, Claim::Completed))
}

/// Like [`lock_call`], and waits for another attempt that is executing the call, as long as the transaction's timeouts
/// allow. Returns the stored response if the call was executed.
pub async fn wait_for_call(
    conn: &mut Conn,
    account_id: Uuid,
    fingerprint: &[u8; 32],
    answered_after: DateTime<Utc>,
) -> Result<Option<Vec<u8>>, Error> {
    query!("select pg_advisory_xact_lock($1)", lock_key(fingerprint)).fetch_one(&mut *conn).await?;
    // A separate statement sees what the previous holder of the lock committed.
    find_response(conn, account_id, fingerprint, answered_after).await
}

/// The advisory lock of a call.
fn lock_key(fingerprint: &[u8; 32]) -> i64 {
    let mut lock = [0; 8];
    lock.copy_from_slice(&fingerprint[..8]);
    i64::from_be_bytes(lock)
}

/// Returns the encrypted response of a call if it is newer than `answered_after`.
pub async fn find_response(
    conn: &mut Conn,
    account_id: Uuid,
    fingerprint: &[u8; 32],
    answered_after: DateTime<Utc>,
) -> Result<Option<Vec<u8>>, Error> {
    let answer = query_scalar!(
        "select answer from idempotent_calls
         where account_id = $1 and fingerprint = $2 and answer is not null and created_at > $3",
        account_id,
        fingerprint,
        answered_after,
    )
    .fetch_optional(conn)
    .await?;
    Ok(answer.flatten())
}

/// Stores the response of a call that this transaction executes.
pub async fn insert_response(
    conn: &mut Conn,
    account_id: Uuid,
    fingerprint: &[u8; 32],
    sealed: &[u8],
    now: DateTime<Utc>,
) -> Result<(), Error> {
    query!(
        "insert into idempotent_calls (account_id, fingerprint, attempt, leased_until, answer, created_at)
         values ($1, $2, gen_random_uuid(), $4, $3, $4)
         on conflict (account_id, fingerprint) do update set answer = excluded.answer,
             created_at = excluded.created_at",
        account_id,
        fingerprint,
        sealed,
        now,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Deletes up to `limit` calls of all accounts made before `before`. Returns how many.
pub async fn delete_expired(conn: &mut Conn, before: DateTime<Utc>, limit: i64) -> Result<u64, Error> {
    let deleted = query!(
        "delete from idempotent_calls where (account_id, fingerprint) in (
           select account_id, fingerprint from idempotent_calls where created_at < $1
           order by created_at limit $2 for update skip locked)",
        before,
        limit,
    )
    .execute(conn)
    .await?;
    Ok(deleted.rows_affected())
}
