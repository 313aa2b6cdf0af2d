//! Sessions: which browser belongs to whom, and which account it works on.
//!
//! Looked up by the hash of the cookie's token: the database alone opens no session.

use chrono::{DateTime, Utc};
use sqlx::{query, query_as};
use uuid::Uuid;

use crate::{Conn, Error};

/// A session about to begin.
#[derive(Debug)]
pub struct NewSession {
    /// Its id.
    pub id: Uuid,
    /// SHA-256 of its token.
    pub token_hash: [u8; 32],
    /// Whose it is.
    pub identity_id: Uuid,
    /// The account it works on; one of the identity's.
    pub account_id: Option<Uuid>,
    /// Now.
    pub created_at: DateTime<Utc>,
    /// When it ends if it isn't used.
    pub expires_at: DateTime<Utc>,
    /// When it ends however much it is used.
    pub ends_at: DateTime<Utc>,
}

/// A session that goes on.
#[derive(Debug, Clone)]
pub struct Session {
    /// Its id.
    pub id: Uuid,
    /// Whose it is.
    pub identity_id: Uuid,
    /// The account it works on; none before the identity has one.
    pub account_id: Option<Uuid>,
    /// The identity's e-mail, to be shown.
    pub email: Option<String>,
    /// The identity's name, to be shown.
    pub name: Option<String>,
    /// When it was last noted to be in use.
    pub last_seen_at: DateTime<Utc>,
    /// When it ends however much it is used.
    pub ends_at: DateTime<Utc>,
}

/// Stores a session.
/// Returns an error if the account does not belong to the identity.
pub async fn insert_session(conn: &mut Conn, session: &NewSession) -> Result<(), Error> {
    query!(
        "insert into sessions
             (id, token_hash, identity_id, account_id, created_at, last_seen_at, expires_at, ends_at)
         values ($1, $2, $3, $4, $5, $5, $6, $7)",
        session.id,
        &session.token_hash,
        session.identity_id,
        session.account_id,
        session.created_at,
        session.expires_at,
        session.ends_at,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// The session behind a token's hash; none if there is none or it has ended.
pub async fn find_session(
    conn: &mut Conn,
    token_hash: &[u8; 32],
    now: DateTime<Utc>,
) -> Result<Option<Session>, Error> {
    let found = query_as!(
        Session,
        "select s.id, s.identity_id, s.account_id, i.email, i.name, s.last_seen_at, s.ends_at
         from sessions s join identities i on i.id = s.identity_id
         where s.token_hash = $1 and s.expires_at > $2",
        token_hash,
        now,
    )
    .fetch_optional(conn)
    .await?;
    Ok(found)
}

/// Notes that a session is in use, which moves its end to `expires_at`. A later note stands.
pub async fn update_seen(
    conn: &mut Conn,
    session_id: Uuid,
    now: DateTime<Utc>,
    expires_at: DateTime<Utc>,
) -> Result<(), Error> {
    query!(
        "update sessions set last_seen_at = $2, expires_at = $3 where id = $1 and last_seen_at < $2",
        session_id,
        now,
        expires_at,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Turns a session to another account of its identity. Gives whether the account is one.
pub async fn update_account(conn: &mut Conn, session_id: Uuid, account_id: Uuid) -> Result<bool, Error> {
    let done = query!(
        "update sessions s set account_id = own.account_id
         from identity_accounts own
         where s.id = $1 and own.account_id = $2 and own.identity_id = s.identity_id",
        session_id,
        account_id,
    )
    .execute(conn)
    .await?;
    Ok(done.rows_affected() > 0)
}

/// Ends the session behind a token's hash, if there is one.
pub async fn delete_session(conn: &mut Conn, token_hash: &[u8; 32]) -> Result<(), Error> {
    query!("delete from sessions where token_hash = $1", token_hash).execute(conn).await?;
    Ok(())
}

/// Deletes at most `limit` sessions that have ended.
pub async fn delete_expired(conn: &mut Conn, now: DateTime<Utc>, limit: i64) -> Result<(), Error> {
    query!(
        "delete from sessions where id in
             (select id from sessions where expires_at <= $1 limit $2 for update skip locked)",
        now,
        limit,
    )
    .execute(conn)
    .await?;
    Ok(())
}
