//! Sign-ins in progress: the browser was redirected to a provider and has not returned. Each can be completed once.

use chrono::{DateTime, Utc};
use sqlx::{query, query_scalar};

use crate::{Conn, Error};

/// A sign-in that begins.
#[derive(Debug)]
pub struct NewSignIn<'a> {
    /// SHA-256 of the `state` parameter.
    pub state_hash: [u8; 32],
    /// SHA-256 of the browser's cookie.
    pub browser_hash: [u8; 32],
    /// The provider's name in the configuration.
    pub provider: &'a str,
    /// Encrypted values that the callback needs.
    pub sealed: &'a [u8],
    pub expires_at: DateTime<Utc>,
}

/// Inserts a sign-in.
pub async fn insert_sign_in(conn: &mut Conn, begun: &NewSignIn<'_>) -> Result<(), Error> {
    query!(
        "insert into sign_ins (state_hash, browser_hash, provider, sealed, expires_at)
         values ($1, $2, $3, $4, $5)",
        &begun.state_hash,
        &begun.browser_hash,
        begun.provider,
        begun.sealed,
        begun.expires_at,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Deletes a sign-in and returns its encrypted values. A second callback finds nothing; a callback from another browser
/// finds nothing and leaves the row in place.
pub async fn consume_sign_in(
    conn: &mut Conn,
    state_hash: &[u8; 32],
    browser_hash: &[u8; 32],
    provider: &str,
    now: DateTime<Utc>,
) -> Result<Option<Vec<u8>>, Error> {
    let taken = query_scalar!(
        "delete from sign_ins
         where state_hash = $1 and browser_hash = $2 and provider = $3 and expires_at > $4
         returning sealed",
        state_hash,
        browser_hash,
        provider,
        now,
    )
    .fetch_optional(conn)
    .await?;
    Ok(taken)
}

/// Deletes up to `limit` sign-ins that were not completed in time.
pub async fn delete_expired(conn: &mut Conn, now: DateTime<Utc>, limit: i64) -> Result<(), Error> {
    query!(
        "delete from sign_ins where state_hash in
             (select state_hash from sign_ins where expires_at <= $1 limit $2 for update skip locked)",
        now,
        limit,
    )
    .execute(conn)
    .await?;
    Ok(())
}
