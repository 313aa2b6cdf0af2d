//! The rows of an account's domains.

use chrono::{DateTime, Utc};
use domain::domains::Found;
use sqlx::types::Json;
use sqlx::{query, query_scalar};
use uuid::Uuid;

use crate::list_filter::sorted_rows;
use crate::{Conn, Error, ListFilter};

/// A custom domain.
#[derive(Debug, Clone)]
pub struct Domain {
    pub id: Uuid,
    /// The host, in lower case and punycode.
    pub domain: String,
    pub subdomain_id: Uuid,
    /// The name of the subdomain.
    pub subdomain: String,
    /// `pending`, `active` or `failed`.
    pub status: String,
    /// `pending`, `verified` or `failed`.
    pub dns_status: String,
    /// The value that the owner publishes in DNS.
    pub challenge: String,
    /// What the last check found.
    pub found: Option<Json<Found>>,
    pub error_code: Option<String>,
    /// A sentence that says what to change.
    pub error: Option<String>,
    /// When everything last stood; `None` if the account does not hold the domain.
    pub verified_at: Option<DateTime<Utc>>,
    /// When its DNS was last checked.
    pub last_checked_at: Option<DateTime<Utc>>,
    pub next_attempt_at: DateTime<Utc>,
    /// The domain that requests are redirected to.
    pub redirect_to: Option<Uuid>,
    /// Strict-Transport-Security in seconds.
    pub hsts_max_age: Option<i64>,
    pub hsts_include_subdomains: bool,
    /// When an order for its certificate was first due. The certificate's fields are `None` unless the account holds the
    /// domain.
    pub ordered_at: Option<DateTime<Utc>>,
    pub certificate_issuer: Option<String>,
    pub certificate_not_after: Option<DateTime<Utc>>,
    pub certificate_renew_at: Option<DateTime<Utc>>,
    pub certificate_next_attempt_at: Option<DateTime<Utc>>,
    pub certificate_error_code: Option<String>,
    pub certificate_error: Option<String>,
    pub created_at: DateTime<Utc>,
}

/// A domain to store.
#[derive(Debug)]
pub struct NewDomain {
    pub id: Uuid,
    /// The host, in lower case and punycode.
    pub domain: String,
    pub subdomain_id: Uuid,
    /// The value that the owner publishes in DNS.
    pub challenge: String,
    pub redirect_to: Option<Uuid>,
    pub hsts_max_age: Option<i64>,
    pub hsts_include_subdomains: bool,
    pub created_at: DateTime<Utc>,
}

/// New settings of a domain.
#[derive(Debug)]
pub struct DomainChange {
    pub subdomain_id: Uuid,
    pub redirect_to: Option<Uuid>,
    pub hsts_max_age: Option<i64>,
    pub hsts_include_subdomains: bool,
}

/// Inserts a domain, due for its first check. Returns `false`, with nothing changed, if the account already has it.
pub async fn insert_domain(conn: &mut Conn, account_id: Uuid, domain: &NewDomain) -> Result<bool, Error> {
    let done = query!(
        "insert into domains (id, account_id, subdomain_id, domain, challenge, redirect_to, hsts_max_age,
                              hsts_include_subdomains, next_attempt_at, created_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9) on conflict (account_id, domain) do nothing",
        domain.id,
        account_id,
        domain.subdomain_id,
        domain.domain,
        domain.challenge,
        domain.redirect_to,
        domain.hsts_max_age,
        domain.hsts_include_subdomains,
        domain.created_at,
    )
    .execute(conn)
    .await?;
    Ok(done.rows_affected() > 0)
}

/// Returns the account's domains; none for a folder, as a domain is in none.
pub async fn list_domains(
    conn: &mut Conn,
    account_id: Uuid,
    filter: &ListFilter,
) -> Result<Vec<Domain>, Error> {
    Ok(sorted_rows!(
        Domain,
        conn,
        account_id,
        filter,
        r#"select d.id, d.domain, d.subdomain_id, s.name as subdomain, d.status, d.dns_status, d.challenge,
                  d.found as "found: Json<Found>", d.error_code, d.error, d.verified_at, d.last_checked_at,
                  d.next_attempt_at, d.redirect_to, d.hsts_max_age, d.hsts_include_subdomains,
                  c.created_at as "ordered_at?", c.issuer as certificate_issuer, c.not_after as certificate_not_after,
                  c.renew_at as certificate_renew_at, c.next_attempt_at as certificate_next_attempt_at,
                  c.error_code as certificate_error_code, c.error as certificate_error, d.created_at
           from domains d join subdomains s on s.id = d.subdomain_id
           left join certificates c on c.name = d.domain and d.verified_at is not null
           where d.account_id = $1 and ($2::uuid is null)
             and ($3::uuid[] is null or d.id = any($3))"#,
        "d.created_at",
        "d.id"
    )?)
}

/// Returns a domain of the account.
pub async fn find_domain(conn: &mut Conn, account_id: Uuid, id: Uuid) -> Result<Option<Domain>, Error> {
    let filter = ListFilter { ids: Some(vec![id]), limit: 1, ..ListFilter::default() };
    Ok(list_domains(conn, account_id, &filter).await?.pop())
}

/// Changes the settings of a domain.
pub async fn update_domain(
    conn: &mut Conn,
    account_id: Uuid,
    id: Uuid,
    change: &DomainChange,
) -> Result<(), Error> {
    query!(
        "update domains set subdomain_id = $3, redirect_to = $4, hsts_max_age = $5, hsts_include_subdomains = $6
         where account_id = $1 and id = $2",
        account_id,
        id,
        change.subdomain_id,
        change.redirect_to,
        change.hsts_max_age,
        change.hsts_include_subdomains,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Deletes a domain and returns the hosts that are served in another way since: its own, and those that redirected to it.
/// `None` if there is no such domain.
pub async fn delete_domain(
    conn: &mut Conn,
    account_id: Uuid,
    id: Uuid,
) -> Result<Option<(String, Vec<String>)>, Error> {
    let redirecting = query_scalar!(
        "select domain from domains where account_id = $1 and redirect_to = $2",
        account_id,
        id,
    )
    .fetch_all(&mut *conn)
    .await?;
    let host = query_scalar!(
        "delete from domains where account_id = $1 and id = $2 returning domain",
        account_id,
        id,
    )
    .fetch_optional(conn)
    .await?;
    Ok(host.map(|host| (host, redirecting)))
}
