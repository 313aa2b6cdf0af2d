//! Pages: what an account publishes and the edge serves.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::{query, query_as, query_scalar};
use uuid::Uuid;

use crate::{Conn, Error, Part};

/// A page about to be stored.
#[derive(Debug)]
pub struct NewPage {
    /// Its id.
    pub id: Uuid,
    /// The folder it lies in.
    pub folder_id: Option<Uuid>,
    /// Where it is served.
    pub subdomain_id: Uuid,
    /// Under which slug.
    pub slug: String,
    /// Its title.
    pub title: String,
    /// Its document.
    pub html: String,
    /// Its style sheet.
    pub css: Option<String>,
    /// The owner's own notes.
    pub metadata: Value,
    /// Whether visitors see it.
    pub is_published: bool,
    /// Now.
    pub created_at: DateTime<Utc>,
}

/// What changes of a page; `None` leaves a part as it is.
#[derive(Debug, Default)]
pub struct PageChange {
    /// New title.
    pub title: Option<String>,
    /// New document.
    pub html: Option<String>,
    /// New style sheet, or none at all.
    pub css: Option<Option<String>>,
    /// Whether visitors see it.
    pub is_published: Option<bool>,
    /// Another folder, or none at all.
    pub folder_id: Option<Option<Uuid>>,
}

/// A page with its content.
#[derive(Debug, Clone)]
pub struct Page {
    /// What lists show of it.
    pub summary: PageSummary,
    /// Where it is served.
    pub subdomain_id: Uuid,
    /// Its document.
    pub html: String,
    /// Its style sheet.
    pub css: Option<String>,
    /// The owner's own notes.
    pub metadata: Value,
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
}

/// Stores a page and, if its slug is the first of its kind, gives it the bare address. `false` and nothing
/// changed if the subdomain already has a page with that slug.
///
/// # Errors
/// The database's.
pub async fn insert_page(conn: &mut Conn, account_id: Uuid, page: &NewPage) -> Result<bool, Error> {
    let inserted = query_scalar!(
        "insert into pages (id, account_id, folder_id, subdomain_id, slug, title, html, css, metadata, is_published,
                            created_at, updated_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $11)
         on conflict (subdomain_id, slug) do nothing returning id",
        page.id,
        account_id,
        page.folder_id,
        page.subdomain_id,
        page.slug,
        page.title,
        page.html,
        page.css,
        page.metadata,
        page.is_published,
        page.created_at,
    )
    .fetch_optional(&mut *conn)
    .await?;
    if inserted.is_none() {
        return Ok(false);
    }
    query!(
        "insert into short_addresses (slug, page_id) values ($1, $2) on conflict do nothing",
        page.slug,
        page.id,
    )
    .execute(conn)
    .await?;
    Ok(true)
}

/// The id of the page that has a slug.
///
/// # Errors
/// The database's.
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
///
/// # Errors
/// The database's.
pub async fn find_page(conn: &mut Conn, account_id: Uuid, id: Uuid) -> Result<Option<Page>, Error> {
    let row = query!(
        r#"select p.id, p.folder_id, p.subdomain_id, s.name as subdomain, p.slug, p.title, p.html, p.css, p.metadata,
                  p.is_published, a.slug is not null as "holds_short_address!", p.created_at, p.updated_at
           from pages p join subdomains s on s.id = p.subdomain_id
           left join short_addresses a on a.page_id = p.id
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
            title: row.title,
            is_published: row.is_published,
            holds_short_address: row.holds_short_address,
            created_at: row.created_at,
            updated_at: row.updated_at,
        },
        subdomain_id: row.subdomain_id,
        html: row.html,
        css: row.css,
        metadata: row.metadata,
    }))
}

/// The account's pages, oldest first, of one collection if it is named.
///
/// # Errors
/// The database's.
pub async fn list_pages(
    conn: &mut Conn,
    account_id: Uuid,
    part: &Part,
    collection: Option<&str>,
) -> Result<Vec<PageSummary>, Error> {
    let pages = query_as!(
        PageSummary,
        r#"select p.id, p.folder_id, s.name as subdomain, p.slug, p.title, p.is_published,
                  a.slug is not null as "holds_short_address!", p.created_at, p.updated_at
           from pages p join subdomains s on s.id = p.subdomain_id
           left join short_addresses a on a.page_id = p.id
           where p.account_id = $1 and ($2::uuid is null or p.folder_id = $2)
             and ($3::uuid[] is null or p.id = any($3))
             and ($4::timestamptz is null or (p.created_at, p.id) > ($4, $5))
             and ($7::text is null or p.metadata ->> 'collection' = $7)
           order by p.created_at, p.id limit $6::bigint + 1"#,
        account_id,
        part.folder_id,
        part.ids.as_deref(),
        part.after.map(|after| after.created_at),
        part.after.map(|after| after.id),
        part.limit,
        collection,
    )
    .fetch_all(conn)
    .await?;
    Ok(pages)
}

/// Edits a page of the account. Its `updated_at` rises by at least a millisecond, whatever the clock says.
///
/// # Errors
/// The database's.
pub async fn update_page(
    conn: &mut Conn,
    account_id: Uuid,
    id: Uuid,
    change: &PageChange,
    now: DateTime<Utc>,
) -> Result<bool, Error> {
    let done = query!(
        "update pages set
            title = coalesce($3, title),
            html = coalesce($4, html),
            css = case when $5 then $6 else css end,
            is_published = coalesce($7, is_published),
            folder_id = case when $9 then $10 else folder_id end,
            updated_at = greatest(date_trunc('milliseconds', $8::timestamptz),
                                  date_trunc('milliseconds', updated_at) + interval '1 millisecond')
         where account_id = $1 and id = $2",
        account_id,
        id,
        change.title,
        change.html,
        change.css.is_some(),
        change.css.as_ref().and_then(Option::as_ref),
        change.is_published,
        now,
        change.folder_id.is_some(),
        change.folder_id.flatten(),
    )
    .execute(conn)
    .await?;
    Ok(done.rows_affected() > 0)
}

/// Deletes a page of the account; gives where it was served.
///
/// # Errors
/// The database's.
pub async fn delete_page(
    conn: &mut Conn,
    account_id: Uuid,
    id: Uuid,
) -> Result<Option<(Uuid, String)>, Error> {
    let gone = query!(
        "delete from pages where account_id = $1 and id = $2 returning subdomain_id, slug",
        account_id,
        id,
    )
    .fetch_optional(conn)
    .await?;
    Ok(gone.map(|row| (row.subdomain_id, row.slug)))
}

/// What visitors of a site see at a slug.
///
/// # Errors
/// The database's.
pub async fn find_document(
    conn: &mut Conn,
    subdomain_id: Uuid,
    slug: &str,
) -> Result<Option<Document>, Error> {
    let document = query_as!(
        Document,
        "select id, html, css from pages where subdomain_id = $1 and slug = $2 and is_published",
        subdomain_id,
        slug,
    )
    .fetch_optional(conn)
    .await?;
    Ok(document)
}

/// Where the page lives that holds the bare address `/p/<slug>`: the name of its subdomain.
///
/// # Errors
/// The database's.
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
