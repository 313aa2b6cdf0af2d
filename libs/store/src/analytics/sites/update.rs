//! Editing and deleting analytics sites.

use sqlx::query;
use uuid::Uuid;

use crate::{Conn, Error};

/// What is to change about a site; `None` leaves it as it is.
#[derive(Debug, Default)]
pub struct SiteChange {
    /// What its owner calls it.
    pub name: Option<String>,
    /// The host it is said to be at; inner `None` removes it.
    pub domain: Option<Option<String>>,
    /// An IANA name, checked.
    pub timezone: Option<String>,
    /// Whether visitors are left out who ask not to be tracked.
    pub honour_dnt: Option<bool>,
    /// `day`, `week`, `month` or `quarter`.
    pub visitor_id_lifetime: Option<&'static str>,
}

/// Changes a site. `false` if the account has no such site.
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
           visitor_id_lifetime = coalesce($8, visitor_id_lifetime)
         where account_id = $1 and id = $2",
        account_id,
        id,
        change.name,
        change.domain.is_some(),
        change.domain.as_ref().and_then(Option::as_deref),
        change.timezone,
        change.honour_dnt,
        change.visitor_id_lifetime,
    )
    .execute(conn)
    .await?;
    Ok(updated.rows_affected() > 0)
}

/// Deletes a site; gives its token and the subdomain it counted. Its visits are in ClickHouse: see
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
