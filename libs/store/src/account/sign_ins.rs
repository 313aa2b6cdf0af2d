//! Sign-ins under way: who was sent to a provider, and from which browser. Each can be finished once.

use chrono::{DateTime, Utc};
use sqlx::{query, query_scalar};

use crate::{Conn, Error};

/// Somebody is being sent to a provider.
#[derive(Debug)]
pub struct NewSignIn<'a> {
    /// SHA-256 of the `state` parameter.
    pub state_hash: [u8; 32],
    /// SHA-256 of the browser's cookie.
    pub browser_hash: [u8; 32],
    /// Which provider, by its name in the settings.
    pub provider: &'a str,
    /// What must be known when they come back, sealed.
    pub sealed: &'a [u8],
    /// Until when it may be finished.
    pub expires_at: DateTime<Utc>,
}

/// Remembers who was sent where.
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

/// Takes a sign-in out, and gives what was sealed for it: whoever comes second finds nothing. Nor does another browser, which leaves it where it is.
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

/// Deletes at most `limit` sign-ins that nobody came back from in time.
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
