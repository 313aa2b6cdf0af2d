//! The published pages of a site, for its sitemap.

use chrono::{DateTime, Utc};
use sqlx::query_as;
use uuid::Uuid;

use crate::{Conn, Error};

/// A published page, or an HTML file that is served without a page.
#[derive(Debug, Clone)]
pub struct PublishedPage {
    /// `None` for a file without a page.
    pub slug: Option<String>,
    /// Path of the file; `None` for a page that the API made.
    pub path: Option<String>,
    pub updated_at: DateTime<Utc>,
}

/// Returns the published pages of a site by slug, without its `404` page, and then its HTML files without a page by
/// path. Takes no account, because visitors have none.
pub async fn list_published_pages(
    conn: &mut Conn,
    subdomain_id: Uuid,
    limit: i64,
) -> Result<Vec<PublishedPage>, Error> {
    let pages = query_as!(
        PublishedPage,
        r#"select slug as "slug?", path as "path?", updated_at as "updated_at!" from (
             select slug, path, updated_at from pages
             where subdomain_id = $1 and is_published and slug <> '404'
             union all
             select null, f.path, coalesce(d.processed_at, d.created_at)
             from served_deploys v join deploys d on d.id = v.deploy_id
             join deploy_files f on f.deploy_id = v.deploy_id
             where v.subdomain_id = $1 and f.content_type = 'text/html'
               and not exists (select from pages p where p.subdomain_id = $1 and p.path = f.path)) listed
           order by slug nulls last, path limit $2"#,
        subdomain_id,
        limit,
    )
    .fetch_all(conn)
    .await?;
    Ok(pages)
}
