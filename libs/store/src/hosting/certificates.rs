//! Certificates by host, and the leases of those that are being ordered. One replica at a time orders a certificate; another
//! one continues its order when the lease has expired.
//!
//! No function takes an account: certificates belong to hosts, and the job-runner orders them for all accounts. A
//! certificate is ordered only for a host of the installation or a verified domain.

use chrono::{DateTime, TimeDelta, Utc};
use contract::{Change, Signal};
use domain::certificates::FailureCode;
use sqlx::{query, query_as, query_scalar};
use uuid::Uuid;

use crate::mails::Kind;
use crate::{Conn, Error, acme, outbox};

/// A renewal that is overdue for longer fails, whatever delays it.
const OVERDUE_AFTER: TimeDelta = TimeDelta::days(1);

/// A lease of a certificate that is being ordered. Writes have no effect once another replica holds a newer one.
#[derive(Debug, Clone)]
pub struct Lease {
    pub name: String,
    pub id: Uuid,
}

/// A certificate to order, leased.
#[derive(Debug, Clone)]
pub struct DueCertificate {
    pub name: String,
    /// The certificate to renew, in PEM.
    pub chain: Option<String>,
    /// Failures since the last success.
    pub failed_attempts: i32,
    /// The first failure, or delay by a limit, since the last success.
    pub failing_since: Option<DateTime<Utc>>,
    /// The authority that issued the certificate to renew.
    pub issuer_directory: Option<String>,
    /// The authority of the order under way.
    pub order_directory: Option<String>,
    /// The order under way.
    pub order_url: Option<String>,
    /// Its sealed key.
    pub order_sealed_key: Option<Vec<u8>>,
}

/// An issued certificate.
#[derive(Debug, Clone)]
pub struct IssuedCertificate<'a> {
    /// PEM, the host's own certificate first.
    pub chain: &'a str,
    pub sealed_key: &'a [u8],
    pub issuer: &'a str,
    pub not_before: DateTime<Utc>,
    pub not_after: DateTime<Utc>,
    /// When to renew it; `None` if it was not ordered.
    pub renew_at: Option<DateTime<Utc>>,
}

/// A failed attempt.
#[derive(Debug, Clone, Copy)]
pub struct Failure<'a> {
    pub code: FailureCode,
    /// The authority's own words, or what was wrong here.
    pub error: &'a str,
    pub next_attempt_at: DateTime<Utc>,
    /// Whether the next attempt continues the order.
    pub keeps_order: bool,
}

/// The certificates in one state.
#[derive(Debug, Clone)]
pub struct StateSummary {
    /// `active`, `renewal_failing`, `expired`, `issuing` or `failed`.
    pub state: String,
    pub count: i64,
    /// How many of them end within seven days.
    pub within_7_days: i64,
    /// How many of them end within 21 days, including those of seven.
    pub within_21_days: i64,
    /// The end of the one that ends first.
    pub first_end: Option<DateTime<Utc>>,
}

/// A certificate that expires soon, for the mail to the domain's owner.
#[derive(Debug, Clone)]
pub struct ExpiringCertificate {
    /// The owner's verified address.
    pub to: String,
    pub domain: String,
    pub not_after: DateTime<Utc>,
    pub error: Option<String>,
    pub next_attempt_at: Option<DateTime<Utc>>,
}

/// Makes the certificate of a host due, unless one is issued or due already.
pub async fn insert_due(conn: &mut Conn, name: &str, now: DateTime<Utc>) -> Result<(), Error> {
    query!(
        "insert into certificates as c (name, next_attempt_at, created_at) values ($1, $2, $2)
         on conflict (name) do update set next_attempt_at = coalesce(c.renew_at, $2) where c.next_attempt_at is null",
        name,
        now,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Stops ordering for hosts that are neither `own` nor verified domains. The renewal of a certificate is only postponed to
/// `again_at`: the domain may be verified again by then.
pub async fn stop_unserved(
    conn: &mut Conn,
    own: &[String],
    now: DateTime<Utc>,
    again_at: DateTime<Utc>,
) -> Result<(), Error> {
    query!(
        "update certificates c set next_attempt_at = case when chain is not null then $3::timestamptz end,
             order_directory = null, order_url = null, order_sealed_key = null
         where next_attempt_at <= $2 and (leased_until is null or leased_until <= $2) and name <> all($1)
           and not exists (select from domains d where d.domain = c.name and d.dns_status = 'verified')",
        own,
        now,
        again_at,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Claims up to `limit` due certificates and leases them, renewals before first orders, which may be many at once. Skips
/// locked rows, so concurrent replicas never claim the same.
pub async fn claim_due(
    conn: &mut Conn,
    lease_id: Uuid,
    now: DateTime<Utc>,
    leased_until: DateTime<Utc>,
    limit: i64,
) -> Result<Vec<DueCertificate>, Error> {
    let due = query_as!(
        DueCertificate,
        "update certificates set lease_id = $1, leased_until = $3
         where name in (select name from certificates
                        where next_attempt_at <= $2 and (leased_until is null or leased_until <= $2)
                        order by chain is null, next_attempt_at limit $4 for update skip locked)
         returning name, chain, failed_attempts, failing_since, issuer_directory, order_directory,
                   order_url, order_sealed_key",
        lease_id,
        now,
        leased_until,
        limit,
    )
    .fetch_all(conn)
    .await?;
    Ok(due)
}

/// Prolongs a lease. Returns `false` if another replica holds a newer one.
pub async fn extend_lease(
    conn: &mut Conn,
    lease: &Lease,
    leased_until: DateTime<Utc>,
) -> Result<bool, Error> {
    let extended = query!(
        "update certificates set leased_until = $3 where name = $1 and lease_id = $2",
        lease.name,
        lease.id,
        leased_until,
    )
    .execute(conn)
    .await?;
    Ok(extended.rows_affected() > 0)
}

/// Stores the order under way, so that another replica can continue it. Returns `false` if the lease was lost.
pub async fn update_order(
    conn: &mut Conn,
    lease: &Lease,
    directory_url: &str,
    order_url: &str,
    sealed_key: &[u8],
) -> Result<bool, Error> {
    let stored = query!(
        "update certificates set order_directory = $3, order_url = $4, order_sealed_key = $5
         where name = $1 and lease_id = $2",
        lease.name,
        lease.id,
        directory_url,
        order_url,
        sealed_key,
    )
    .execute(conn)
    .await?;
    Ok(stored.rows_affected() > 0)
}

/// Stores an issued certificate and ends the lease. Returns the signals to publish after the commit; `None` if the lease
/// was lost, with nothing changed.
pub async fn complete_order(
    conn: &mut Conn,
    lease: &Lease,
    directory_url: &str,
    issued: &IssuedCertificate<'_>,
    now: DateTime<Utc>,
) -> Result<Option<Vec<Signal>>, Error> {
    let stored = query!(
        "update certificates set chain = $3, sealed_key = $4, issuer = $5, not_before = $6, not_after = $7,
             renew_at = $8, next_attempt_at = $8, failed_attempts = 0, failing_since = null, error_code = null,
             error = null, order_directory = null, order_url = null, order_sealed_key = null, lease_id = null,
             leased_until = null, expiry_mailed_at = null, issuer_directory = $9, renewal_info_due_at = $10
         where name = $1 and lease_id = $2",
        lease.name,
        lease.id,
        issued.chain,
        issued.sealed_key,
        issued.issuer,
        issued.not_before,
        issued.not_after,
        issued.renew_at,
        directory_url,
        now,
    )
    .execute(&mut *conn)
    .await?;
    if stored.rows_affected() == 0 {
        return Ok(None);
    }
    acme::mark_issued(conn, directory_url, &lease.name, now).await?;
    acme::delete_challenges(conn, &lease.name).await?;
    let changes = [Change::Certificate { name: lease.name.clone() }];
    Ok(Some(outbox::insert_orders(conn, &[], &changes, None, now).await?))
}

/// Stores a certificate that was not ordered, in place of the one that the name has. Returns the signals to publish after
/// the commit, none if it is stored already.
pub async fn replace_certificate(
    conn: &mut Conn,
    name: &str,
    issued: &IssuedCertificate<'_>,
    now: DateTime<Utc>,
) -> Result<Vec<Signal>, Error> {
    let stored = query!(
        "insert into certificates as c (name, chain, sealed_key, issuer, not_before, not_after, created_at)
         values ($1, $2, $3, $4, $5, $6, $7)
         on conflict (name) do update set chain = $2, sealed_key = $3, issuer = $4, not_before = $5, not_after = $6,
             renew_at = null, next_attempt_at = null, failed_attempts = 0, failing_since = null, error_code = null,
             error = null, order_directory = null, order_url = null, order_sealed_key = null, lease_id = null,
             leased_until = null, issuer_directory = null, renewal_info_due_at = null
         where c.chain is distinct from $2",
        name,
        issued.chain,
        issued.sealed_key,
        issued.issuer,
        issued.not_before,
        issued.not_after,
        now,
    )
    .execute(&mut *conn)
    .await?;
    if stored.rows_affected() == 0 {
        return Ok(Vec::new());
    }
    outbox::insert_orders(conn, &[], &[Change::Certificate { name: name.to_owned() }], None, now).await
}

/// Records a failed attempt and ends the lease. The issued certificate stays. Has no effect if the lease was lost.
pub async fn record_failure(
    conn: &mut Conn,
    lease: &Lease,
    failure: &Failure<'_>,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    query!(
        "update certificates set failed_attempts = failed_attempts + 1, failing_since = coalesce(failing_since, $3),
             error_code = $4, error = $5, next_attempt_at = $6, lease_id = null, leased_until = null,
             order_directory = case when $7 then order_directory end, order_url = case when $7 then order_url end,
             order_sealed_key = case when $7 then order_sealed_key end
         where name = $1 and lease_id = $2",
        lease.name,
        lease.id,
        now,
        failure.code.as_str(),
        failure.error,
        failure.next_attempt_at,
        failure.keeps_order,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Postpones an attempt that a limit delays, and ends the lease. This is no failed attempt, but begins the time after which
/// another authority is tried.
pub async fn postpone(
    conn: &mut Conn,
    lease: &Lease,
    until: DateTime<Utc>,
    reason: &str,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    query!(
        "update certificates set next_attempt_at = $3, error_code = $4, error = $5,
             failing_since = coalesce(failing_since, $6), lease_id = null, leased_until = null
         where name = $1 and lease_id = $2",
        lease.name,
        lease.id,
        until,
        FailureCode::RateLimited.as_str(),
        reason,
        now,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Returns the chain of a host's certificate.
pub async fn find_chain(conn: &mut Conn, name: &str) -> Result<Option<String>, Error> {
    let chain = query_scalar!("select chain from certificates where name = $1", name);
    Ok(chain.fetch_optional(conn).await?.flatten())
}

/// Counts the certificates by state, with the end of the first that ends. A renewal fails also while a limit or something
/// else delays it.
pub async fn summarize(conn: &mut Conn, now: DateTime<Utc>) -> Result<Vec<StateSummary>, Error> {
    let states = query_as!(
        StateSummary,
        r#"select case when not_after > $1 and (failed_attempts > 0 or error_code is not null or renew_at < $2)
                       then 'renewal_failing'
                       when not_after > $1 then 'active'
                       when not_after is not null then 'expired'
                       when failed_attempts > 0 then 'failed' else 'issuing' end as "state!",
                  count(*) as "count!", count(*) filter (where not_after <= $3) as "within_7_days!",
                  count(*) filter (where not_after <= $4) as "within_21_days!", min(not_after) as first_end
           from certificates group by 1"#,
        now,
        now - OVERDUE_AFTER,
        now + TimeDelta::days(7),
        now + TimeDelta::days(21),
    )
    .fetch_all(conn)
    .await?;
    Ok(states)
}

/// Queues one mail to the owner of each domain with a certificate that ends before `before` and that renewals fail for.
pub async fn insert_expiry_mails(
    conn: &mut Conn,
    now: DateTime<Utc>,
    before: DateTime<Utc>,
) -> Result<u64, Error> {
    let mails = query!(
        "with expiring as (
           update certificates set expiry_mailed_at = $1
           where (failed_attempts > 0 or error_code is not null or renew_at < $4) and not_after < $2
             and expiry_mailed_at is null returning name)
         insert into mails (kind, about, account_id, due_at)
         select $3, d.id, d.account_id, $1 from expiring e
         join domains d on d.domain = e.name and d.verified_at is not null
         on conflict do nothing",
        now,
        before,
        Kind::CertificateExpiring.as_str(),
        now - OVERDUE_AFTER,
    )
    .execute(conn)
    .await?;
    Ok(mails.rows_affected())
}

/// Returns what the owner of a domain is told about its expiring certificate. `None` if it was renewed since, or if the
/// account has no owner with a verified address.
pub async fn find_expiring(
    conn: &mut Conn,
    account_id: Uuid,
    domain_id: Uuid,
    now: DateTime<Utc>,
) -> Result<Option<ExpiringCertificate>, Error> {
    let expiring = query_as!(
        ExpiringCertificate,
        r#"select i.email as "to!", d.domain, c.not_after as "not_after!", c.error, c.next_attempt_at
           from domains d join certificates c on c.name = d.domain
           join identity_accounts own on own.account_id = d.account_id join identities i on i.id = own.identity_id
           where d.account_id = $1 and d.id = $2 and c.not_after is not null
             and (c.failed_attempts > 0 or c.error_code is not null or c.renew_at < $3) and i.email_verified and i.email is not null"#,
        account_id,
        domain_id,
        now - OVERDUE_AFTER,
    )
    .fetch_optional(conn)
    .await?;
    Ok(expiring)
}
