//! Reads pages.

use chrono::{DateTime, Utc};
use domain::pages::Content;
use domain::rendering::Source;
use serde_json::Value;
use sqlx::{query, query_as, query_scalar};
use uuid::Uuid;

use crate::entries::PageLocation;
use crate::list_filter::{collect_page, sorted_stream};
use crate::{Conn, Error, ListFilter, ListPage};

/// A page with its content.
#[derive(Debug, Clone)]
pub struct Page {
    pub summary: PageSummary,
    /// Path of the deployed file that it shows, if any.
    pub path: Option<String>,
    pub content: Content,
}

impl Page {
    /// Returns where it is served.
    pub fn location(&self) -> PageLocation {
        let (subdomain_id, slug) = (self.summary.subdomain_id, self.summary.slug.clone());
        PageLocation { subdomain_id, slug, path: self.path.clone() }
    }
}

/// A page without its content, as in a list.
#[derive(Debug, Clone)]
pub struct PageSummary {
    pub id: Uuid,
    pub folder_id: Option<Uuid>,
    pub subdomain_id: Uuid,
    /// The name of its subdomain.
    pub subdomain: String,
    pub slug: String,
    pub title: String,
    pub is_published: bool,
    /// When it will be published, if scheduled.
    pub publish_at: Option<DateTime<Utc>>,
    pub views: i64,
    /// Whether it holds the short URL `/p/<slug>`.
    pub holds_short_address: bool,
    /// The owner's own data.
    pub metadata: Value,
    pub created_at: DateTime<Utc>,
    /// Strictly increasing, in milliseconds.
    pub updated_at: DateTime<Utc>,
}

/// The parts of a page that the edge renders.
#[derive(Debug, Clone)]
pub struct Document {
    pub id: Uuid,
    pub html: String,
    pub css: Option<String>,
    /// Template of an entry.
    pub entry_template: Option<String>,
    /// The data of the entries, newest first; empty without a template.
    pub entries: Vec<Value>,
}

impl Document {
    /// Returns the input of the renderer.
    pub fn source(&self) -> Source<'_> {
        Source {
            html: &self.html,
            css: self.css.as_deref(),
            entry_template: self.entry_template.as_deref(),
            entries: &self.entries,
        }
    }
}

/// Returns the id of the page with this slug.
pub async fn find_id_by_slug(
    conn: &mut Conn,
    account_id: Uuid,
    subdomain_id: Uuid,
    slug: &str,
) -> Result<Option<Uuid>, Error> {
    let id = query_scalar!(
        "select id from pages where account_id = $1 and subdomain_id = $2 and slug = $3",
        account_id,
        subdomain_id,
        slug,
    )
    .fetch_optional(conn)
    .await?;
    Ok(id)
}

/// A page that has a slug.
#[derive(Debug, Clone)]
pub struct SlugMatch {
    pub id: Uuid,
    pub slug: String,
    /// Path of the deployed file that it shows, if any.
    pub path: Option<String>,
}

/// Returns the pages of a subdomain that have these slugs.
pub async fn list_by_slugs(
    conn: &mut Conn,
    account_id: Uuid,
    subdomain_id: Uuid,
    slugs: &[&str],
) -> Result<Vec<SlugMatch>, Error> {
    let pages = query_as!(
        SlugMatch,
        "select id, slug, path from pages where account_id = $1 and subdomain_id = $2 and slug = any($3)",
        account_id,
        subdomain_id,
        slugs as _,
    )
    .fetch_all(conn)
    .await?;
    Ok(pages)
}

/// Returns where a page of the account is served.
pub async fn find_location(
    conn: &mut Conn,
    account_id: Uuid,
    id: Uuid,
) -> Result<Option<PageLocation>, Error> {
    let location = query_as!(
        PageLocation,
        "select subdomain_id, slug, path from pages where account_id = $1 and id = $2",
        account_id,
        id,
    )
    .fetch_optional(conn)
    .await?;
    Ok(location)
}

/// Returns a page of the account.
pub async fn find_page(conn: &mut Conn, account_id: Uuid, id: Uuid) -> Result<Option<Page>, Error> {
    let row = query!(
        r#"select p.id, p.folder_id, p.subdomain_id, p.path, s.name as subdomain, p.slug, p.title, p.html, p.css,
                  p.entry_template, p.metadata, p.is_published, p.publish_at, coalesce(v.views, 0) as "views!",
                  a.slug is not null as "holds_short_address!", p.created_at, p.updated_at
           from pages p join subdomains s on s.id = p.subdomain_id
           left join short_addresses a on a.page_id = p.id left join page_views v on v.page_id = p.id
           where p.account_id = $1 and p.id = $2"#,
        account_id,
        id,
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.map(|row| Page {
        summary: PageSummary {
            id: row.id,
            folder_id: row.folder_id,
            subdomain_id: row.subdomain_id,
            subdomain: row.subdomain,
            slug: row.slug,
            title: row.title.clone(),
            is_published: row.is_published,
            publish_at: row.publish_at,
            views: row.views,
            holds_short_address: row.holds_short_address,
            metadata: row.metadata.clone(),
            created_at: row.created_at,
            updated_at: row.updated_at,
        },
        path: row.path,
        content: Content {
            title: row.title,
            html: row.html,
            css: row.css,
            entry_template: row.entry_template,
            metadata: row.metadata,
        },
    }))
}

/// Which pages to list.
#[derive(Debug, Default)]
pub struct PageFilter<'a> {
    /// Only those with this `collection` in their metadata.
    pub collection: Option<&'a str>,
    /// Only those with this slug, on any subdomain.
    pub slug: Option<&'a str>,
    /// Only those of this subdomain.
    pub subdomain_id: Option<Uuid>,
}

/// Returns a page of the list of the account's pages.
pub async fn list_pages(
    conn: &mut Conn,
    account_id: Uuid,
    filter: &ListFilter,
    pages: &PageFilter<'_>,
) -> Result<ListPage<PageSummary>, Error> {
    macro_rules! summaries {
        ($with_slug:literal, $slug:expr) => {
            sorted_stream!(
                PageSummary,
                conn,
                account_id,
                filter,
                r#"select p.id, p.folder_id, p.subdomain_id, s.name as subdomain, p.slug, p.title, p.is_published,
                          p.publish_at, coalesce(v.views, 0) as "views!",
                          a.slug is not null as "holds_short_address!", p.metadata, p.created_at, p.updated_at
                   from pages p join subdomains s on s.id = p.subdomain_id
                   left join short_addresses a on a.page_id = p.id left join page_views v on v.page_id = p.id
                   where p.account_id = $1 and ($2::uuid is null or p.folder_id = $2)
                     and ($3::uuid[] is null or p.id = any($3))
                     and ($7::text is null or p.metadata ->> 'collection' = $7)
                     and ($9::uuid is null or p.subdomain_id = $9)"# + $with_slug,
                "p.created_at",
                "p.id",
                pages.collection,
                $slug,
                pages.subdomain_id
            )
        };
    }
    // A statement of its own finds the few pages of a slug by an index, also when its plan is kept for all slugs.
    let rows = match pages.slug {
        Some(slug) => summaries!(" and p.slug = $8", slug),
        None => summaries!(" and $8::text is null", None::<&str>),
    };
    collect_page(rows, filter.limit, |page| domain::json_bytes(&page.metadata)).await
}

/// Returns the subdomain name of the page that holds the short URL `/p/<slug>`.
pub async fn find_short_address(conn: &mut Conn, slug: &str) -> Result<Option<String>, Error> {
    let name = query_scalar!(
        "select s.name from short_addresses a
         join pages p on p.id = a.page_id join subdomains s on s.id = p.subdomain_id where a.slug = $1",
        slug,
    )
    .fetch_optional(conn)
    .await?;
    Ok(name)
}
