//! Custom domains: hosts of an account that show one of its subdomains.

use chrono::{DateTime, Utc};
use sqlx::{query, query_as, query_scalar};
use uuid::Uuid;

use crate::subdomains::StoredSite;
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
    /// `pending`, `issuing`, `active` or `failed`.
    pub ssl_status: String,
    /// The value that the owner publishes in DNS.
    pub challenge: String,
    /// The last error.
    pub error: Option<String>,
    /// When its DNS was last checked.
    pub last_checked_at: Option<DateTime<Utc>>,
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
    pub created_at: DateTime<Utc>,
}

/// Inserts a domain. Returns `false`, with nothing changed, if the account already has it.
pub async fn insert_domain(conn: &mut Conn, account_id: Uuid, domain: &NewDomain) -> Result<bool, Error> {
    let done = query!(
        "insert into domains (id, account_id, subdomain_id, domain, challenge, created_at)
         values ($1, $2, $3, $4, $5, $6) on conflict (account_id, domain) do nothing",
        domain.id,
        account_id,
        domain.subdomain_id,
        domain.domain,
        domain.challenge,
        domain.created_at,
    )
    .execute(conn)
    .await?;
    Ok(done.rows_affected() > 0)
}

/// Returns the account's domains, oldest first.
pub async fn list_domains(
    conn: &mut Conn,
    account_id: Uuid,
    filter: &ListFilter,
) -> Result<Vec<Domain>, Error> {
    let domains = query_as!(
        Domain,
        "select d.id, d.domain, d.subdomain_id, s.name as subdomain, d.status, d.dns_status, d.ssl_status, d.challenge,
                d.error, d.last_checked_at, d.created_at
         from domains d join subdomains s on s.id = d.subdomain_id
         where d.account_id = $1 and ($2::uuid[] is null or d.id = any($2))
           and ($3::timestamptz is null or (d.created_at, d.id) > ($3, $4))
         order by d.created_at, d.id limit $5::bigint + 1",
        account_id,
        filter.ids.as_deref(),
        filter.after.map(|after| after.created_at),
        filter.after.map(|after| after.id),
        filter.limit,
    )
    .fetch_all(conn)
    .await?;
    Ok(domains)
}

/// Returns a domain of the account.
pub async fn find_domain(conn: &mut Conn, account_id: Uuid, id: Uuid) -> Result<Option<Domain>, Error> {
    let filter = ListFilter { ids: Some(vec![id]), limit: 1, ..ListFilter::default() };
    Ok(list_domains(conn, account_id, &filter).await?.pop())
}

/// Changes the subdomain that a domain shows.
pub async fn update_subdomain(
    conn: &mut Conn,
    account_id: Uuid,
    id: Uuid,
    subdomain_id: Uuid,
) -> Result<(), Error> {
    query!(
        "update domains set subdomain_id = $3 where account_id = $1 and id = $2",
        account_id,
        id,
        subdomain_id,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Deletes a domain and returns its host.
pub async fn delete_domain(conn: &mut Conn, account_id: Uuid, id: Uuid) -> Result<Option<String>, Error> {
    let host = query_scalar!(
        "delete from domains where account_id = $1 and id = $2 returning domain",
        account_id,
        id,
    )
    .fetch_optional(conn)
    .await?;
    Ok(host)
}

/// Returns whether a site is served at this host, of any account. Takes no account, because deliveries of one account must
/// not reach the forms of another either.
pub async fn is_verified(conn: &mut Conn, host: &str) -> Result<bool, Error> {
    let verified = query_scalar!(
        r#"select exists (select from domains where domain = $1 and dns_status = 'verified') as "verified!""#,
        host,
    )
    .fetch_one(conn)
    .await?;
    Ok(verified)
}

/// Returns the site of a verified domain. Takes no account, because visitors have none.
pub async fn find_site_by_domain(conn: &mut Conn, domain: &str) -> Result<Option<StoredSite>, Error> {
    let site = query_as!(
        StoredSite,
        r#"select d.subdomain_id, a.claimed_at is not null as "claimed!", false as "is_preview!",
                  a.suspended_at is not null as "suspended!", null::text as moved_to,
                  p.id as "deploy_id?", p.rules::text as rules
           from domains d join accounts a on a.id = d.account_id
           left join served_deploys v on v.subdomain_id = d.subdomain_id left join deploys p on p.id = v.deploy_id
           where d.domain = $1 and d.dns_status = 'verified'"#,
        domain,
    )
    .fetch_optional(conn)
    .await?;
    Ok(site)
}
