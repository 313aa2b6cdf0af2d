//! Stores and reads analytics sites.

use std::collections::{HashMap, HashSet};

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use domain::plans::Plan;
use domain::visitors::Lifetime;
use sqlx::{query, query_as, query_scalar};
use uuid::Uuid;

use crate::accounts::read_plan;
use crate::list_filter::sorted_rows;
use crate::{Conn, Error, ListFilter};

/// A site to store.
#[derive(Debug)]
pub struct NewSite {
    pub id: Uuid,
    /// Sent with every event; see `domain::sites::token`.
    pub site_token: String,
    pub name: String,
    /// The host of the site according to its owner; not verified.
    pub domain: Option<String>,
    /// The subdomain with pages that include the tracker. The caller must have checked its owner.
    pub subdomain_id: Option<Uuid>,
    pub folder_id: Option<Uuid>,
    /// Whether the fragment distinguishes the site's hosted pages.
    pub hash_routing: bool,
    pub created_at: DateTime<Utc>,
}

/// A site as its owner sees it.
#[derive(Debug, Clone)]
pub struct Site {
    pub id: Uuid,
    /// Sent with every event.
    pub site_token: String,
    pub name: String,
    /// The host of the site according to its owner; not verified.
    pub domain: Option<String>,
    /// The subdomain with pages that include the tracker.
    pub subdomain_id: Option<Uuid>,
    pub folder_id: Option<Uuid>,
    pub created_at: DateTime<Utc>,
    /// IANA time zone name; determines where a day begins.
    pub timezone: String,
    /// Whether events of visitors who send Do Not Track are dropped.
    pub honour_dnt: bool,
    /// Whether the fragment distinguishes the site's hosted pages.
    pub hash_routing: bool,
    /// How long a visitor id is stable: `day`, `week`, `month` or `quarter`.
    pub visitor_id_lifetime: String,
}

/// The site and account of an event, with the settings that the collector needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SiteOwner {
    pub site_id: Uuid,
    pub account_id: Uuid,
    pub plan: Plan,
    /// Determines where the site's days begin.
    pub zone: Tz,
    /// Whether events of visitors who send Do Not Track are dropped.
    pub honour_dnt: bool,
    /// How long a visitor id is stable.
    pub lifetime: Lifetime,
}

struct Row {
    site_token: String,
    id: Uuid,
    account_id: Uuid,
    plan: String,
    timezone: String,
    honour_dnt: bool,
    visitor_id_lifetime: String,
}

/// Settings of the tracker in a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrackerTag {
    /// Sent with every event.
    pub site_token: String,
    /// Whether visitors who send Do Not Track are not counted.
    pub honour_dnt: bool,
    /// Whether the fragment distinguishes pages.
    pub hash_routing: bool,
}

/// Inserts a site. Returns `false`, with nothing changed, if its subdomain already has one.
pub async fn insert_site(conn: &mut Conn, account_id: Uuid, site: &NewSite) -> Result<bool, Error> {
    let inserted = query!(
        "insert into analytics_sites (id, account_id, site_token, name, domain, subdomain_id, folder_id,
                                      created_at, hash_routing)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9) on conflict (subdomain_id) do nothing",
        site.id,
        account_id,
        site.site_token,
        site.name,
        site.domain,
        site.subdomain_id,
        site.folder_id,
        site.created_at,
        site.hash_routing,
    )
    .execute(conn)
    .await?;
    Ok(inserted.rows_affected() > 0)
}

/// Returns a site of the account.
pub async fn find_site(conn: &mut Conn, account_id: Uuid, id: Uuid) -> Result<Option<Site>, Error> {
    let filter = ListFilter { ids: Some(vec![id]), limit: 1, ..ListFilter::default() };
    Ok(list_sites(conn, account_id, &filter).await?.pop())
}

/// Returns the site that counts the pages of a subdomain.
pub async fn find_site_of_subdomain(
    conn: &mut Conn,
    account_id: Uuid,
    subdomain_id: Uuid,
) -> Result<Option<Site>, Error> {
    let site = query_as!(
        Site,
        "select id, site_token, name, domain, subdomain_id, folder_id, created_at, timezone, honour_dnt,
                hash_routing, visitor_id_lifetime
         from analytics_sites where account_id = $1 and subdomain_id = $2",
        account_id,
        subdomain_id,
    )
    .fetch_optional(conn)
    .await?;
    Ok(site)
}

/// Returns the account's sites.
pub async fn list_sites(conn: &mut Conn, account_id: Uuid, filter: &ListFilter) -> Result<Vec<Site>, Error> {
    Ok(sorted_rows!(
        Site,
        conn,
        account_id,
        filter,
        "select id, site_token, name, domain, subdomain_id, folder_id, created_at, timezone, honour_dnt,
                hash_routing, visitor_id_lifetime
         from analytics_sites
         where account_id = $1 and ($2::uuid is null or folder_id = $2) and ($3::uuid[] is null or id = any($3))",
        "created_at",
        "id"
    )?)
}

/// Returns the owner of a site token, or `None` if the token is unknown or the account suspended.
///
/// Takes no account, because the token is all that a visitor's browser has.
pub async fn find_owner_by_token(conn: &mut Conn, site_token: &str) -> Result<Option<SiteOwner>, Error> {
    let owners = list_owners(conn, &[site_token.to_owned()]).await?;
    Ok(owners.into_values().next())
}

/// Returns the owners of many tokens. Unknown tokens are absent.
pub async fn list_owners(
    conn: &mut Conn,
    site_tokens: &[String],
) -> Result<HashMap<String, SiteOwner>, Error> {
    let rows = query_as!(
        Row,
        "select s.site_token, s.id, s.account_id, a.plan, s.timezone, s.honour_dnt, s.visitor_id_lifetime
         from analytics_sites s join accounts a on a.id = s.account_id
         where s.site_token = any($1) and a.suspended_at is null",
        site_tokens,
    )
    .fetch_all(conn)
    .await?;
    let read = |row: Row| {
        let owner = SiteOwner {
            site_id: row.id,
            account_id: row.account_id,
            plan: read_plan(&row.plan)?,
            zone: row.timezone.parse().unwrap_or(Tz::UTC),
            honour_dnt: row.honour_dnt,
            lifetime: Lifetime::parse(&row.visitor_id_lifetime).unwrap_or_default(),
        };
        Ok((row.site_token, owner))
    };
    rows.into_iter().map(read).collect()
}

/// Returns those of these sites that still exist.
pub async fn list_existing(conn: &mut Conn, ids: &[Uuid]) -> Result<HashSet<Uuid>, Error> {
    let ids = query_scalar!("select id from analytics_sites where id = any($1)", ids).fetch_all(conn).await?;
    Ok(ids.into_iter().collect())
}
