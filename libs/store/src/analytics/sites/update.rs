//! Updates and deletes analytics sites.

use sqlx::query;
use uuid::Uuid;

use crate::{Conn, Error};

/// Changes to a site; `None` leaves a field unchanged.
#[derive(Debug, Default)]
pub struct SiteChange {
    pub name: Option<String>,
    /// The inner `None` removes the host.
    pub domain: Option<Option<String>>,
    /// IANA time zone name, validated by the caller.
    pub timezone: Option<String>,
    /// Whether events of visitors who send Do Not Track are dropped.
    pub honour_dnt: Option<bool>,
    /// Whether the fragment distinguishes the site's hosted pages.
    pub hash_routing: Option<bool>,
    /// `day`, `week`, `month` or `quarter`.
    pub visitor_id_lifetime: Option<&'static str>,
}

/// Updates a site. Returns `false` if the account has no such site.
pub async fn update_site(
    conn: &mut Conn,
    account_id: Uuid,
    id: Uuid,
    change: &SiteChange,
) -> Result<bool, Error> {
    let updated = query!(
        "update analytics_sites set
           name = coalesce($3, name),
           domain = case when $4 then $5 else domain end,
           timezone = coalesce($6, timezone),
           honour_dnt = coalesce($7, honour_dnt),
           visitor_id_lifetime = coalesce($8, visitor_id_lifetime),
           hash_routing = coalesce($9, hash_routing)
         where account_id = $1 and id = $2",
        account_id,
        id,
        change.name,
        change.domain.is_some(),
        change.domain.as_ref().and_then(Option::as_deref),
        change.timezone,
        change.honour_dnt,
        change.visitor_id_lifetime,
        change.hash_routing,
    )
    .execute(conn)
    .await?;
    Ok(updated.rows_affected() > 0)
}

/// Deletes a site and returns its token and subdomain. Its visits are in ClickHouse: see
/// [`crate::purges::insert_event_purge`].
pub async fn delete_site(
    conn: &mut Conn,
    account_id: Uuid,
    id: Uuid,
) -> Result<Option<(String, Option<Uuid>)>, Error> {
    let deleted = query!(
        "delete from analytics_sites where account_id = $1 and id = $2 returning site_token, subdomain_id",
        account_id,
        id,
    )
    .fetch_optional(conn)
    .await?;
    Ok(deleted.map(|row| (row.site_token, row.subdomain_id)))
}
