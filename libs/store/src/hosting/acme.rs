//! Accounts at certificate authorities, the challenges that the edges answer, and the orders that count against limits.
//!
//! No function takes an account: certificates belong to hosts, and the job-runner orders them for all accounts.

use chrono::{DateTime, Utc};
use domain::certificates::{
    CERTIFICATES_PERIOD, ChallengeKind, ExhaustedLimits, FAILURES_PERIOD, ORDERS_PERIOD, OrderLimits,
};
use sqlx::{query, query_as, query_scalar};
use uuid::Uuid;

use crate::{Conn, Error};

/// An order about to be sent to an authority.
#[derive(Debug, Clone, Copy)]
pub struct NewOrder<'a> {
    pub id: Uuid,
    pub directory_url: &'a str,
    pub name: &'a str,
    /// [`domain::certificates::registered_domain`] of the name.
    pub registered_domain: &'a str,
    /// Whether it is a renewal, or for a host of the installation: no count of orders includes or delays it.
    pub is_exempt: bool,
    pub now: DateTime<Utc>,
}

/// A challenge that an authority is about to check.
#[derive(Debug, Clone, Copy)]
pub struct NewChallenge<'a> {
    pub token: &'a str,
    pub name: &'a str,
    pub kind: ChallengeKind,
    pub key_authorization: &'a str,
    pub expires_at: DateTime<Utc>,
}

/// Returns the sealed credentials of the account at an authority.
pub async fn find_account(conn: &mut Conn, directory_url: &str) -> Result<Option<Vec<u8>>, Error> {
    let sealed = query_scalar!(
        "select sealed_credentials from acme_accounts where directory_url = $1",
        directory_url,
    )
    .fetch_optional(conn)
    .await?;
    Ok(sealed)
}

/// Stores the account at an authority unless another replica stored one first. Returns the stored credentials.
pub async fn insert_account(
    conn: &mut Conn,
    directory_url: &str,
    sealed_credentials: &[u8],
    now: DateTime<Utc>,
) -> Result<Vec<u8>, Error> {
    let stored = query_scalar!(
        "insert into acme_accounts (directory_url, sealed_credentials, created_at) values ($1, $2, $3)
         on conflict (directory_url) do update set directory_url = excluded.directory_url
         returning sealed_credentials",
        directory_url,
        sealed_credentials,
        now,
    )
    .fetch_one(conn)
    .await?;
    Ok(stored)
}

/// Deletes an account that the authority does not know any more, unless it was replaced since.
pub async fn delete_account(
    conn: &mut Conn,
    directory_url: &str,
    sealed_credentials: &[u8],
) -> Result<(), Error> {
    query!(
        "delete from acme_accounts where directory_url = $1 and sealed_credentials = $2",
        directory_url,
        sealed_credentials,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Locks the counts of an authority's orders until the end of the transaction, so that concurrent orders can't exceed a
/// limit together, and returns the exhausted limits.
pub async fn lock_exhausted_limits(
    conn: &mut Conn,
    order: &NewOrder<'_>,
    limits: &OrderLimits,
) -> Result<ExhaustedLimits, Error> {
    query!("select pg_advisory_xact_lock(hashtextextended($1, 17))", order.directory_url)
        .fetch_one(&mut *conn)
        .await?;
    let nth = |limit: u32| i64::from(limit.max(1)) - 1;
    // The event that must leave the period is the newest but `limit - 1`.
    let exhausted = query_as!(
        ExhaustedLimits,
        r#"select (select created_at from acme_orders
                   where directory_url = $1 and not is_exempt and not is_rejected and created_at > $4 and not $10
                   order by created_at desc offset $5 limit 1) as "order",
                  (select created_at from acme_orders
                   where directory_url = $1 and not is_exempt and not is_rejected and created_at > $4 and not $10
                     and account_id = (select account_id from domains where domain = $3 and verified_at is not null)
                   order by created_at desc offset $11 limit 1) as account_order,
                  (select created_at from acme_orders
                   where directory_url = $1 and registered_domain = $2 and failed_at is null and created_at > $6
                     and not is_exempt and not $10
                   order by created_at desc offset $7 limit 1) as certificate,
                  (select failed_at from acme_orders
                   where directory_url = $1 and name = $3 and failed_at > $8 and created_at > $6
                   order by failed_at desc offset $9 limit 1) as failure"#,
        order.directory_url,
        order.registered_domain,
        order.name,
        order.now - ORDERS_PERIOD,
        nth(limits.first_orders_per_3h()),
        order.now - CERTIFICATES_PERIOD,
        nth(limits.certificates_per_domain_per_week),
        order.now - FAILURES_PERIOD,
        nth(limits.failures_per_hour),
        order.is_exempt,
        nth(limits.account_orders_per_3h()),
    )
    .fetch_one(conn)
    .await?;
    Ok(exhausted)
}

/// Counts an order, before it is sent: one that was sent and not counted could exceed a limit.
pub async fn insert_order(conn: &mut Conn, order: &NewOrder<'_>) -> Result<(), Error> {
    query!(
        "insert into acme_orders (id, directory_url, name, registered_domain, is_exempt, created_at, account_id)
         values ($1, $2, $3, $4, $5, $6, (select account_id from domains where domain = $3 and verified_at is not null))",
        order.id,
        order.directory_url,
        order.name,
        order.registered_domain,
        order.is_exempt,
        order.now,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Marks an order that the authority refused at once. It counts as a failure of its name only.
pub async fn mark_rejected(conn: &mut Conn, id: Uuid, now: DateTime<Utc>) -> Result<(), Error> {
    query!("update acme_orders set failed_at = $2, is_rejected = true where id = $1", id, now)
        .execute(conn)
        .await?;
    Ok(())
}

/// Deletes the open order of a name: the authority did not accept it, or does not know it any more.
pub async fn delete_open_order(conn: &mut Conn, directory_url: &str, name: &str) -> Result<(), Error> {
    query!(
        "delete from acme_orders where issued_at is null and failed_at is null and id = (
           select id from acme_orders where directory_url = $1 and name = $2 order by created_at desc, id desc limit 1)",
        directory_url,
        name,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Marks the newest order for a name as issued.
pub async fn mark_issued(
    conn: &mut Conn,
    directory_url: &str,
    name: &str,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    query!(
        "update acme_orders set issued_at = $3 where issued_at is null and failed_at is null and id = (
           select id from acme_orders where directory_url = $1 and name = $2 order by created_at desc, id desc limit 1)",
        directory_url,
        name,
        now,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Marks the newest order for a name as refused.
pub async fn mark_failed(
    conn: &mut Conn,
    directory_url: &str,
    name: &str,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    query!(
        "update acme_orders set failed_at = $3 where issued_at is null and failed_at is null and id = (
           select id from acme_orders where directory_url = $1 and name = $2 order by created_at desc, id desc limit 1)",
        directory_url,
        name,
        now,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Stores a challenge for the edges. A challenge that another replica stored is kept longer.
pub async fn insert_challenge(conn: &mut Conn, challenge: &NewChallenge<'_>) -> Result<(), Error> {
    query!(
        "insert into acme_challenges (token, name, kind, key_authorization, expires_at) values ($1, $2, $3, $4, $5)
         on conflict (token) do update set key_authorization = excluded.key_authorization,
             kind = excluded.kind, expires_at = excluded.expires_at",
        challenge.token,
        challenge.name,
        challenge.kind.as_str(),
        challenge.key_authorization,
        challenge.expires_at,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Deletes the challenges of a name.
pub async fn delete_challenges(conn: &mut Conn, name: &str) -> Result<(), Error> {
    query!("delete from acme_challenges where name = $1", name).execute(conn).await?;
    Ok(())
}

/// Deletes challenges that expired and orders that no limit counts any more.
pub async fn delete_expired(conn: &mut Conn, now: DateTime<Utc>) -> Result<(), Error> {
    query!("delete from acme_challenges where expires_at <= $1", now).execute(&mut *conn).await?;
    query!("delete from acme_orders where created_at <= $1", now - CERTIFICATES_PERIOD).execute(conn).await?;
    Ok(())
}
