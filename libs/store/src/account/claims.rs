//! Claims: how an account becomes somebody's.
//!
//! The token leads to the trial while it is unclaimed, and to whoever claimed it afterwards. A claim locks the
//! account's row, and so does the purge of trials: of the two, one wins.

use chrono::{DateTime, Utc};
use sqlx::{query, query_as, query_scalar};
use uuid::Uuid;

use crate::{Conn, Error};

/// An account that nobody has claimed.
#[derive(Debug, Clone)]
pub struct Trial {
    /// Its id.
    pub account_id: Uuid,
    /// Until when it may be claimed.
    pub claim_deadline: Option<DateTime<Utc>>,
}

/// The unclaimed account that a token leads to.
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

/// As [`find_trial`], and nobody else claims or purges it until the end of the transaction.
pub async fn lock_trial(conn: &mut Conn, token_hash: &[u8; 32]) -> Result<Option<Trial>, Error> {
    // Whoever waited here for another's claim finds nothing: the row is looked at again, and its hash is gone.
    let found = query_as!(
        Trial,
        "select id as account_id, claim_deadline from accounts where claim_token_hash = $1 for update",
        token_hash,
    )
    .fetch_optional(conn)
    .await?;
    Ok(found)
}

/// The identity that used a token, if somebody did and the account still exists.
pub async fn find_claimant(conn: &mut Conn, token_hash: &[u8; 32]) -> Result<Option<Uuid>, Error> {
    let found =
        query_scalar!("select identity_id from identity_accounts where claim_token_hash = $1", token_hash)
            .fetch_optional(conn)
            .await?;
    Ok(found)
}

/// Makes a trial permanent: its token and its deadline are gone.
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

/// Makes an account that was never a trial, with its counters at nothing.
pub async fn insert_claimed(conn: &mut Conn, account_id: Uuid, now: DateTime<Utc>) -> Result<(), Error> {
    query!("insert into accounts (id, claimed_at, created_at) values ($1, $2, $2)", account_id, now)
        .execute(&mut *conn)
        .await?;
    query!("insert into usage (account_id) values ($1)", account_id).execute(conn).await?;
    Ok(())
}
