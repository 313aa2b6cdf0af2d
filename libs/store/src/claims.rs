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

/// A key as whoever claims its account sees it.
#[derive(Debug, Clone)]
pub struct LiveKey {
    /// Its id.
    pub id: Uuid,
    /// The part that may be shown.
    pub shown_prefix: String,
    /// What it is called.
    pub label: String,
    /// When it was last used, to the minute.
    pub last_used_at: Option<DateTime<Utc>>,
}

/// The unclaimed account that a token leads to.
///
/// # Errors
/// The database's.
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
///
/// # Errors
/// The database's.
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
///
/// # Errors
/// The database's.
pub async fn find_claimant(conn: &mut Conn, token_hash: &[u8; 32]) -> Result<Option<Uuid>, Error> {
    let found =
        query_scalar!("select identity_id from identity_accounts where claim_token_hash = $1", token_hash)
            .fetch_optional(conn)
            .await?;
    Ok(found)
}

/// Makes a trial permanent: its token and its deadline are gone.
///
/// # Errors
/// The database's.
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
///
/// # Errors
/// The database's.
pub async fn insert_claimed(conn: &mut Conn, account_id: Uuid, now: DateTime<Utc>) -> Result<(), Error> {
    query!("insert into accounts (id, claimed_at, created_at) values ($1, $2, $2)", account_id, now)
        .execute(&mut *conn)
        .await?;
    query!("insert into usage (account_id) values ($1)", account_id).execute(conn).await?;
    Ok(())
}

/// The account's keys that work, the oldest first.
///
/// # Errors
/// The database's.
pub async fn list_live_keys(
    conn: &mut Conn,
    account_id: Uuid,
    now: DateTime<Utc>,
) -> Result<Vec<LiveKey>, Error> {
    let keys = query_as!(
        LiveKey,
        "select id, shown_prefix, label, last_used_at from api_keys
         where account_id = $1 and revoked_at is null and (expires_at is null or expires_at > $2)
         order by created_at, id",
        account_id,
        now,
    )
    .fetch_all(conn)
    .await?;
    Ok(keys)
}

/// Revokes those of `key_ids` that are the account's, and every key made with them.
///
/// # Errors
/// The database's.
pub async fn revoke_keys(
    conn: &mut Conn,
    account_id: Uuid,
    key_ids: &[Uuid],
    now: DateTime<Utc>,
) -> Result<(), Error> {
    query!(
        "with recursive gone as (
             select id from api_keys where account_id = $1 and id = any($2)
             union
             select child.id from api_keys child join gone on child.parent_id = gone.id
         )
         update api_keys set revoked_at = $3 where id in (select id from gone) and revoked_at is null",
        account_id,
        key_ids,
        now,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// The account's subdomains, whose sites change with a claim: search engines may come in.
///
/// # Errors
/// The database's.
pub async fn list_hosts(conn: &mut Conn, account_id: Uuid) -> Result<Vec<String>, Error> {
    let names = query_scalar!("select name from subdomains where account_id = $1 order by id", account_id)
        .fetch_all(conn)
        .await?;
    Ok(names)
}
