//! The published pages of a site, for its sitemap.

use chrono::{DateTime, Utc};
use sqlx::query_as;
use uuid::Uuid;

use crate::{Conn, Error};

/// A published page.
#[derive(Debug, Clone)]
pub struct PublishedPage {
    pub slug: String,
    pub updated_at: DateTime<Utc>,
}

/// Returns the published pages of a site by slug, without its `404` page.
pub async fn list_published_pages(
    conn: &mut Conn,
    subdomain_id: Uuid,
    limit: i64,
) -> Result<Vec<PublishedPage>, Error> {
    let pages = query_as!(
        PublishedPage,
        "select slug, updated_at from pages
         where subdomain_id = $1 and is_published and slug <> '404' order by slug limit $2",
        subdomain_id,
        limit,
    )
    .fetch_all(conn)
    .await?;
    Ok(pages)
}
