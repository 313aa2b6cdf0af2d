//! Which custom domains have a certificate. The certificates themselves are issued elsewhere.

use chrono::{DateTime, Utc};
use domain::certificates::FailureCode;
use sqlx::{query, query_scalar};
use uuid::Uuid;

use crate::{Conn, Error};

/// Makes an order due for a domain without a certificate. Leaves certificates and orders under way as they are.
pub(super) async fn order_certificate(
    conn: &mut Conn,
    domain: &str,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    query!(
        "insert into certificates (name, next_attempt_at, created_at) values ($1, $2, $2)
         on conflict (name) do update set next_attempt_at = $2
         where certificates.chain is null and certificates.next_attempt_at is null",
        domain,
        now,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Makes a refused order of a domain due now if all of its records stand, because its owner may have mended the cause.
/// The limit of refused orders still delays it.
pub async fn hurry_refused_order(
    conn: &mut Conn,
    account_id: Uuid,
    domain_id: Uuid,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    query!(
        "update certificates c set next_attempt_at = $3 from domains d
         where d.account_id = $1 and d.id = $2 and d.verified_at is not null and d.error_code is null
           and c.name = d.domain and c.error_code = $4 and c.next_attempt_at > $3 and c.lease_id is null",
        account_id,
        domain_id,
        now,
        FailureCode::Refused.as_str(),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Deletes the certificate of a domain that no account holds. Returns whether there was one. Takes no account, because
/// certificates belong to names.
pub async fn delete_certificate(conn: &mut Conn, domain: &str) -> Result<bool, Error> {
    let deleted = query!(
        "delete from certificates c where c.name = $1
           and not exists (select from domains d where d.domain = c.name and d.verified_at is not null)",
        domain,
    )
    .execute(conn)
    .await?;
    Ok(deleted.rows_affected() > 0)
}

/// Deletes up to `limit` certificates with domains that were deleted together with their accounts, except those of this
/// installation's own hosts and wildcards. Returns their names.
pub async fn delete_orphaned_certificates(
    conn: &mut Conn,
    own_hosts: &[String],
    limit: i64,
) -> Result<Vec<String>, Error> {
    let names = query_scalar!(
        "delete from certificates where name in (
           select c.name from certificates c
           where c.name <> all($1) and not starts_with(c.name, '*.')
             and not exists (select from domains d where d.domain = c.name)
           limit $2 for update skip locked)
         returning name",
        own_hosts,
        limit,
    )
    .fetch_all(conn)
    .await?;
    Ok(names)
}
