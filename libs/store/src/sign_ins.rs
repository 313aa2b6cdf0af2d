//! Sign-ins under way: who was sent to a provider, and from which browser. Each can be finished once.

use chrono::{DateTime, Utc};
use sqlx::{query, query_as};

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
    /// What its token must repeat.
    pub nonce: &'a str,
    /// What proves at the token endpoint that we are who began (RFC 7636).
    pub pkce_verifier: &'a str,
    /// Where to go afterwards: a path of this host.
    pub return_to: &'a str,
    /// Until when it may be finished.
    pub expires_at: DateTime<Utc>,
}

/// What was remembered of somebody who came back.
#[derive(Debug, Clone)]
pub struct SignIn {
    /// What the provider's token must repeat.
    pub nonce: String,
    /// What proves that we are who began.
    pub pkce_verifier: String,
    /// Where to go now.
    pub return_to: String,
}

/// Remembers who was sent where.
///
/// # Errors
/// The database's.
pub async fn insert_sign_in(conn: &mut Conn, begun: &NewSignIn<'_>) -> Result<(), Error> {
    query!(
        "insert into sign_ins (state_hash, browser_hash, provider, nonce, pkce_verifier, return_to, expires_at)
         values ($1, $2, $3, $4, $5, $6, $7)",
        &begun.state_hash,
        &begun.browser_hash,
        begun.provider,
        begun.nonce,
        begun.pkce_verifier,
        begun.return_to,
        begun.expires_at,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Takes a sign-in out: whoever comes second finds nothing. Nor does another browser, which leaves it where it is.
///
/// # Errors
/// The database's.
pub async fn take_sign_in(
    conn: &mut Conn,
    state_hash: &[u8; 32],
    browser_hash: &[u8; 32],
    provider: &str,
    now: DateTime<Utc>,
) -> Result<Option<SignIn>, Error> {
    let taken = query_as!(
        SignIn,
        "delete from sign_ins
         where state_hash = $1 and browser_hash = $2 and provider = $3 and expires_at > $4
         returning nonce, pkce_verifier, return_to",
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
///
/// # Errors
/// The database's.
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
