//! What the edge reads to terminate TLS: certificates, challenges of certificate authorities, and the keys of session tickets.
//! Nothing here takes an account, because visitors have none.

use chrono::{DateTime, Utc};
use sqlx::{query, query_as, query_scalar};
use uuid::Uuid;

use crate::{Conn, Error};

/// A certificate with its key.
#[derive(Debug, Clone)]
pub struct StoredCertificate {
    /// The chain in PEM, the host's own certificate first.
    pub chain: String,
    /// The private key, PKCS #8 in DER, sealed for the purpose `certificate_key`.
    pub sealed_key: Vec<u8>,
    pub not_after: DateTime<Utc>,
}

/// A challenge that a certificate authority is about to check.
#[derive(Debug, Clone)]
pub struct PendingChallenge {
    pub token: String,
    /// The host.
    pub name: String,
    /// `http-01` or `tls-alpn-01`.
    pub kind: String,
    pub key_authorization: String,
}

/// A key of session tickets, which all edges share.
#[derive(Debug, Clone)]
pub struct TicketKey {
    pub id: Uuid,
    /// 32 bytes, sealed for the purpose `ticket_key`.
    pub sealed_key: Vec<u8>,
    pub created_at: DateTime<Utc>,
}

/// Number of ticket keys that are kept.
const TICKET_KEYS: i64 = 3;

/// Returns the certificate of a name: a host, or `*.` and the sites domain.
pub async fn find_certificate(conn: &mut Conn, name: &str) -> Result<Option<StoredCertificate>, Error> {
    let certificate = query_as!(
        StoredCertificate,
        r#"select chain as "chain!", sealed_key as "sealed_key!", not_after as "not_after!"
           from certificates where name = $1 and chain is not null"#,
        name,
    )
    .fetch_optional(conn)
    .await?;
    Ok(certificate)
}

/// Returns up to `limit` names that have a certificate, in order and from behind `after`.
pub async fn list_certificate_names(conn: &mut Conn, after: &str, limit: i64) -> Result<Vec<String>, Error> {
    let names = query_scalar!(
        "select name from certificates where chain is not null and name > $1 order by name limit $2",
        after,
        limit,
    );
    Ok(names.fetch_all(conn).await?)
}

/// Returns the challenges that certificate authorities may check now, the newest first. There are as many as orders under
/// way.
pub async fn list_pending_challenges(
    conn: &mut Conn,
    now: DateTime<Utc>,
) -> Result<Vec<PendingChallenge>, Error> {
    let pending = query_as!(
        PendingChallenge,
        "select token, name, kind, key_authorization from acme_challenges where expires_at > $1
         order by expires_at desc",
        now,
    )
    .fetch_all(conn)
    .await?;
    Ok(pending)
}

/// Returns the kept ticket keys, newest first.
pub async fn list_ticket_keys(conn: &mut Conn) -> Result<Vec<TicketKey>, Error> {
    let keys = query_as!(
        TicketKey,
        "select id, sealed_key, created_at from tls_ticket_keys order by created_at desc, id desc limit $1",
        TICKET_KEYS,
    )
    .fetch_all(conn)
    .await?;
    Ok(keys)
}

/// Inserts a ticket key unless one was created after `unless_after`, and deletes all but the newest three. Of concurrent
/// callers only one inserts its key. Must be called in a transaction.
pub async fn rotate_ticket_keys(
    conn: &mut Conn,
    key: &TicketKey,
    unless_after: DateTime<Utc>,
) -> Result<(), Error> {
    query!("select pg_advisory_xact_lock(hashtextextended('tls_ticket_keys', 0))")
        .fetch_one(&mut *conn)
        .await?;
    query!(
        "insert into tls_ticket_keys (id, sealed_key, created_at)
         select $1, $2, $3 where not exists (select from tls_ticket_keys where created_at > $4)",
        key.id,
        key.sealed_key,
        key.created_at,
        unless_after,
    )
    .execute(&mut *conn)
    .await?;
    query!(
        "delete from tls_ticket_keys where id not in
           (select id from tls_ticket_keys order by created_at desc, id desc limit $1)",
        TICKET_KEYS,
    )
    .execute(conn)
    .await?;
    Ok(())
}
