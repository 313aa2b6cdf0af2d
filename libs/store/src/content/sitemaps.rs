//! What search engines are told of a site: its published pages.

use chrono::{DateTime, Utc};
use sqlx::query_as;
use uuid::Uuid;

use crate::{Conn, Error};

/// A page that anybody may find.
#[derive(Debug, Clone)]
pub struct PublishedPage {
    /// Where it is.
    pub slug: String,
    /// When it was last edited.
    pub updated_at: DateTime<Utc>,
}

/// The published pages of a site, by their slugs; without the one that is shown for what isn't there.
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
