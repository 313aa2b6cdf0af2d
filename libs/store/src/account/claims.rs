//! Claims: how a trial gets an owner.
//!
//! The token leads to the trial until it is claimed and to its owner afterwards. Claims and the purge of trials lock
//! the account's row, so only one of them succeeds.

use chrono::{DateTime, Utc};
use sqlx::{query, query_as, query_scalar};
use uuid::Uuid;

use crate::{Conn, Error};

/// An unclaimed account.
#[derive(Debug, Clone)]
pub struct Trial {
    pub account_id: Uuid,
    pub claim_deadline: Option<DateTime<Utc>>,
}

/// Returns the unclaimed account of a claim token.
pub async fn find_trial(conn: &mut Conn, token_hash: &[u8; 32]) -> Result<Option<Trial>, Error> {
    let found = query_as!(
        Trial,
        "select id as account_id, claim_deadline from accounts where claim_token_hash = $1",
        token_hash,
    )
    .fetch_optional(conn)
    .await?;
    Ok(found)
}

/// Like [`find_trial`], and locks it against other claims and the purge until the end of the transaction.
pub async fn lock_trial(conn: &mut Conn, token_hash: &[u8; 32]) -> Result<Option<Trial>, Error> {
    // After waiting for another claim, Postgres checks the row again: its hash is gone, so nothing is found.
    let found = query_as!(
        Trial,
        "select id as account_id, claim_deadline from accounts where claim_token_hash = $1 for update",
        token_hash,
    )
    .fetch_optional(conn)
    .await?;
    Ok(found)
}

/// Locks an unclaimed account against claims and the purge until the end of the transaction, and returns its deadline.
/// `None` if it is claimed.
pub async fn lock_deadline(conn: &mut Conn, account_id: Uuid) -> Result<Option<DateTime<Utc>>, Error> {
    let deadline = query_scalar!(
        r#"select claim_deadline as "claim_deadline!" from accounts
           where id = $1 and claimed_at is null and claim_deadline is not null for update"#,
        account_id,
    )
    .fetch_optional(conn)
    .await?;
    Ok(deadline)
}

/// Replaces the claim token of a trial. The caller must hold [`lock_deadline`].
pub async fn update_token(conn: &mut Conn, account_id: Uuid, token_hash: &[u8; 32]) -> Result<(), Error> {
    query!("update accounts set claim_token_hash = $2 where id = $1", account_id, token_hash)
        .execute(conn)
        .await?;
    Ok(())
}

/// Returns the identity that used a token, if the account still exists.
pub async fn find_claimant(conn: &mut Conn, token_hash: &[u8; 32]) -> Result<Option<Uuid>, Error> {
    let found =
        query_scalar!("select identity_id from identity_accounts where claim_token_hash = $1", token_hash)
            .fetch_optional(conn)
            .await?;
    Ok(found)
}

/// Makes a trial permanent by removing its token and deadline.
pub async fn update_claimed(conn: &mut Conn, account_id: Uuid, now: DateTime<Utc>) -> Result<(), Error> {
    query!(
        "update accounts set claimed_at = $2, claim_token_hash = null, claim_deadline = null where id = $1",
        account_id,
        now,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Inserts an account that was never a trial, with counters at zero.
pub async fn insert_claimed(conn: &mut Conn, account_id: Uuid, now: DateTime<Utc>) -> Result<(), Error> {
    query!("insert into accounts (id, claimed_at, created_at) values ($1, $2, $2)", account_id, now)
        .execute(&mut *conn)
        .await?;
    query!("insert into usage (account_id) values ($1)", account_id).execute(conn).await?;
    Ok(())
}
