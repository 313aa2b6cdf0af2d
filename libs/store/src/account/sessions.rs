//! Sessions: the sign-in of a browser and the account it works on.
//!
//! Sessions are found by the hash of the cookie's token, so a copy of the database opens none.

use chrono::{DateTime, Utc};
use sqlx::{query, query_as, query_scalar};
use uuid::Uuid;

use crate::{Conn, Error};

/// A session to store.
#[derive(Debug)]
pub struct NewSession {
    pub id: Uuid,
    /// SHA-256 of its token.
    pub token_hash: [u8; 32],
    pub identity_id: Uuid,
    /// The account it works on, one of the identity's.
    pub account_id: Option<Uuid>,
    pub created_at: DateTime<Utc>,
    /// When it ends without use.
    pub expires_at: DateTime<Utc>,
    /// When it ends regardless of use.
    pub ends_at: DateTime<Utc>,
}

/// A current session.
#[derive(Debug, Clone)]
pub struct Session {
    pub id: Uuid,
    pub identity_id: Uuid,
    /// The account it works on; `None` until the identity has one.
    pub account_id: Option<Uuid>,
    /// For display only.
    pub email: Option<String>,
    /// For display only.
    pub name: Option<String>,
    /// When its use was last recorded.
    pub last_seen_at: DateTime<Utc>,
    /// When it ends regardless of use.
    pub ends_at: DateTime<Utc>,
}

/// Inserts a session. Returns an error if the account does not belong to the identity.
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

/// Returns the session of a token's hash, or `None` if it is unknown or has ended.
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

/// A session in its person's list.
#[derive(Debug, Clone)]
pub struct ListedSession {
    pub id: Uuid,
    pub signed_in_at: DateTime<Utc>,
    /// When its use was last recorded.
    pub last_seen_at: DateTime<Utc>,
    /// When it ends without further use.
    pub expires_at: DateTime<Utc>,
    /// When it ends regardless of use.
    pub ends_at: DateTime<Utc>,
}

/// Returns up to `limit` current sessions of a person, newest first.
pub async fn list_sessions(
    conn: &mut Conn,
    identity_id: Uuid,
    now: DateTime<Utc>,
    limit: i64,
) -> Result<Vec<ListedSession>, Error> {
    let sessions = query_as!(
        ListedSession,
        "select id, created_at as signed_in_at, last_seen_at, expires_at, ends_at from sessions
         where identity_id = $1 and expires_at > $2 order by created_at desc, id desc limit $3",
        identity_id,
        now,
        limit,
    );
    Ok(sessions.fetch_all(conn).await?)
}

/// Deletes a current session of a person. Returns the hash of its token, or `None` if the person has no such session.
pub async fn delete_own_session(
    conn: &mut Conn,
    identity_id: Uuid,
    id: Uuid,
    now: DateTime<Utc>,
) -> Result<Option<Vec<u8>>, Error> {
    let token_hash = query_scalar!(
        "delete from sessions where identity_id = $1 and id = $2 and expires_at > $3 returning token_hash",
        identity_id,
        id,
        now,
    );
    Ok(token_hash.fetch_optional(conn).await?)
}

/// Records the use of a session, which moves its end to `expires_at`. A later record wins.
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

/// Switches a session to another account of its identity. Returns `false` if the identity does not own it.
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

/// Deletes the session of a token's hash, if any.
pub async fn delete_session(conn: &mut Conn, token_hash: &[u8; 32]) -> Result<(), Error> {
    query!("delete from sessions where token_hash = $1", token_hash).execute(conn).await?;
    Ok(())
}

/// Deletes up to `limit` sessions that have ended.
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
