//! Pages: what an account publishes and the edge serves.

use chrono::{DateTime, Utc};
use domain::pages::Content;
use domain::rendering::Source;
use serde_json::Value;
use sqlx::{query, query_scalar};
use uuid::Uuid;

use crate::list_filter::list_rows;
use crate::{Conn, Error, ListFilter};

/// A page with its content.
#[derive(Debug, Clone)]
pub struct Page {
    /// What lists show of it.
    pub summary: PageSummary,
    /// Where it is served.
    pub subdomain_id: Uuid,
    /// What it says.
    pub content: Content,
}

/// A page in a list: without its content.
#[derive(Debug, Clone)]
pub struct PageSummary {
    /// Its id.
    pub id: Uuid,
    /// The folder it lies in.
    pub folder_id: Option<Uuid>,
    /// The name of its subdomain.
    pub subdomain: String,
    /// Its slug.
    pub slug: String,
    /// Its title.
    pub title: String,
    /// Whether visitors see it.
    pub is_published: bool,
    /// When it publishes itself, if it is going to.
    pub publish_at: Option<DateTime<Utc>>,
    /// How often it was looked at.
    pub views: i64,
    /// Whether it holds the bare address `/p/<slug>`.
    pub holds_short_address: bool,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// When it was last edited; rises strictly, in milliseconds.
    pub updated_at: DateTime<Utc>,
}

/// What the edge serves of a page.
#[derive(Debug, Clone)]
pub struct Document {
    /// The page.
    pub id: Uuid,
    /// Its HTML.
    pub html: String,
    /// Its style sheet.
    pub css: Option<String>,
    /// What each of its entries looks like.
    pub entry_template: Option<String>,
    /// The data of its entries, the newest first; none without a template.
    pub entries: Vec<Value>,
}

impl Document {
    /// What visitors get is made of this.
    pub fn source(&self) -> Source<'_> {
        Source {
            html: &self.html,
            css: self.css.as_deref(),
            entry_template: self.entry_template.as_deref(),
            entries: &self.entries,
        }
    }
}

/// The id of the page that has a slug.
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

/// A page of the account.
pub async fn find_page(conn: &mut Conn, account_id: Uuid, id: Uuid) -> Result<Option<Page>, Error> {
    let row = query!(
        r#"select p.id, p.folder_id, p.subdomain_id, s.name as subdomain, p.slug, p.title, p.html, p.css,
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
            subdomain: row.subdomain,
            slug: row.slug,
            title: row.title.clone(),
            is_published: row.is_published,
            publish_at: row.publish_at,
            views: row.views,
            holds_short_address: row.holds_short_address,
            created_at: row.created_at,
            updated_at: row.updated_at,
        },
        subdomain_id: row.subdomain_id,
        content: Content {
            title: row.title,
            html: row.html,
            css: row.css,
            entry_template: row.entry_template,
            metadata: row.metadata,
        },
    }))
}

/// The account's pages, oldest first, of one collection if it is named.
pub async fn list_pages(
    conn: &mut Conn,
    account_id: Uuid,
    filter: &ListFilter,
    collection: Option<&str>,
) -> Result<Vec<PageSummary>, Error> {
    Ok(list_rows!(
        PageSummary,
        conn,
        account_id,
        filter,
        r#"select p.id, p.folder_id, s.name as subdomain, p.slug, p.title, p.is_published,
                  p.publish_at, coalesce(v.views, 0) as "views!",
                  a.slug is not null as "holds_short_address!", p.created_at, p.updated_at
           from pages p join subdomains s on s.id = p.subdomain_id
           left join short_addresses a on a.page_id = p.id left join page_views v on v.page_id = p.id
           where p.account_id = $1 and ($2::uuid is null or p.folder_id = $2)
             and ($3::uuid[] is null or p.id = any($3))
             and ($4::timestamptz is null or (p.created_at, p.id) > ($4, $5))
             and ($7::text is null or p.metadata ->> 'collection' = $7)
           order by p.created_at, p.id limit $6::bigint + 1"#,
        collection
    )?)
}

/// What visitors of a site see at a slug.
pub async fn find_document(
    conn: &mut Conn,
    subdomain_id: Uuid,
    slug: &str,
) -> Result<Option<Document>, Error> {
    let document = query!(
        r#"select id, html, css, entry_template,
                  case when entry_template is not null then array(
                    select data from page_entries where page_id = pages.id order by created_at desc, id desc)
                  end as entries
           from pages where subdomain_id = $1 and slug = $2 and is_published"#,
        subdomain_id,
        slug,
    )
    .fetch_optional(conn)
    .await?;
    Ok(document.map(|row| Document {
        id: row.id,
        html: row.html,
        css: row.css,
        entry_template: row.entry_template,
        entries: row.entries.unwrap_or_default(),
    }))
}

/// Where the page lives that holds the bare address `/p/<slug>`: the name of its subdomain.
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
