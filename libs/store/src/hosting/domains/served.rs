//! Which domains are served. They are for a week after everything last stood ([`domain::domains::SERVED_FOR`]); the row that
//! holds the domain is the only one with a time.

use domain::domains::strict_transport_security;
use sqlx::{query, query_scalar};

use crate::subdomains::StoredSite;
use crate::{Conn, Error};

/// Returns whether an account holds this host. Takes no account, because deliveries of one account must not reach the forms
/// of another either.
pub async fn is_verified(conn: &mut Conn, host: &str) -> Result<bool, Error> {
    let verified = query_scalar!(
        r#"select exists (select from domains where domain = $1 and verified_at is not null) as "verified!""#,
        host,
    )
    .fetch_one(conn)
    .await?;
    Ok(verified)
}

/// Returns the site of a served domain, and the served domain that it redirects to. Takes no account, because visitors have
/// none.
pub async fn find_site_by_domain(conn: &mut Conn, domain: &str) -> Result<Option<StoredSite>, Error> {
    let site = query!(
        r#"select d.subdomain_id, a.claimed_at is not null as "claimed!", a.suspended_at is not null as "suspended!",
                  (select r.domain from domains r
                   where r.id = d.redirect_to and r.account_id = d.account_id
                     and r.verified_at > now() - interval '7 days') as moved_to,
                  d.hsts_max_age, d.hsts_include_subdomains, p.id as "deploy_id?", p.rules::text as rules
           from domains d join accounts a on a.id = d.account_id
           left join served_deploys v on v.subdomain_id = d.subdomain_id left join deploys p on p.id = v.deploy_id
           where d.domain = $1 and d.verified_at > now() - interval '7 days'"#,
        domain,
    )
    .fetch_optional(conn)
    .await?;
    Ok(site.map(|row| StoredSite {
        subdomain_id: row.subdomain_id,
        claimed: row.claimed,
        suspended: row.suspended,
        moved_to: row.moved_to,
        hsts: row.hsts_max_age.map(|max_age| strict_transport_security(max_age, row.hsts_include_subdomains)),
        is_preview: false,
        deploy_id: row.deploy_id,
        rules: row.rules,
    }))
}
