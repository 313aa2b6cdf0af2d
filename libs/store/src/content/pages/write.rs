//! Inserts and updates pages, each change with a version.

use chrono::{DateTime, Utc};
use domain::pages::{Content, Publication, PublicationChange};
use serde_json::Value;
use sqlx::{query, query_scalar};
use uuid::Uuid;

use crate::versions::{NewVersion, insert_versions};
use crate::{Conn, Error, usage};

/// A page to store.
#[derive(Debug)]
pub struct NewPage {
    pub id: Uuid,
    pub folder_id: Option<Uuid>,
    pub subdomain_id: Uuid,
    pub slug: String,
    pub content: Content,
    pub publication: Publication,
    /// The deploy that writes it, if any.
    pub deploy_id: Option<Uuid>,
    pub created_at: DateTime<Utc>,
}

/// Changes to a page; `None` leaves a field unchanged.
#[derive(Debug, Default)]
pub struct PageChange {
    pub title: Option<String>,
    pub html: Option<String>,
    /// The inner `None` removes the style sheet.
    pub css: Option<Option<String>>,
    /// The inner `None` removes the template.
    pub entry_template: Option<Option<String>>,
    pub metadata: Option<Value>,
    pub publication: PublicationChange,
    /// The inner `None` removes the page from its folder.
    pub folder_id: Option<Option<Uuid>>,
    /// The deploy that writes it, if any.
    pub deploy_id: Option<Uuid>,
}

impl From<Content> for PageChange {
    /// Replaces the whole content, as a rollback to a version does.
    fn from(content: Content) -> Self {
        let Content { title, html, css, entry_template, metadata } = content;
        Self {
            title: Some(title),
            html: Some(html),
            css: Some(css),
            entry_template: Some(entry_template),
            metadata: Some(metadata),
            ..Self::default()
        }
    }
}

/// The stored state before an update.
struct Current {
    content: Content,
    content_hash: Option<Vec<u8>>,
    publication: Publication,
    folder_id: Option<Uuid>,
}

/// Inserts a page with its first version. The first page of the installation with a slug gets its short URL. Returns
/// `false`, with nothing changed, if the subdomain already has a page with that slug.
pub async fn insert_page(conn: &mut Conn, account_id: Uuid, page: &NewPage) -> Result<bool, Error> {
    usage::lock(conn, account_id).await?;
    if insert_pages(conn, account_id, &[page]).await?.is_empty() {
        return Ok(false);
    }
    let version = NewVersion { page_id: page.id, content: &page.content, deploy_id: page.deploy_id };
    insert_versions(conn, account_id, &[version], page.created_at).await?;
    Ok(true)
}

/// Inserts pages without their versions, except those with a slug that exists. Returns the ids of the inserted ones.
pub(super) async fn insert_pages(
    conn: &mut Conn,
    account_id: Uuid,
    pages: &[&NewPage],
) -> Result<Vec<Uuid>, Error> {
    if pages.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<Uuid> = pages.iter().map(|page| page.id).collect();
    let folders: Vec<Option<Uuid>> = pages.iter().map(|page| page.folder_id).collect();
    let subdomains: Vec<Uuid> = pages.iter().map(|page| page.subdomain_id).collect();
    let slugs: Vec<&str> = pages.iter().map(|page| page.slug.as_str()).collect();
    let titles: Vec<&str> = pages.iter().map(|page| page.content.title.as_str()).collect();
    let html: Vec<&str> = pages.iter().map(|page| page.content.html.as_str()).collect();
    let css: Vec<Option<&str>> = pages.iter().map(|page| page.content.css.as_deref()).collect();
    let templates: Vec<Option<&str>> =
        pages.iter().map(|page| page.content.entry_template.as_deref()).collect();
    let metadata: Vec<Value> = pages.iter().map(|page| page.content.metadata.clone()).collect();
    let hashes: Vec<Vec<u8>> = pages.iter().map(|page| page.content.hash().to_vec()).collect();
    let published: Vec<bool> = pages.iter().map(|page| page.publication.is_published).collect();
    let due: Vec<Option<DateTime<Utc>>> = pages.iter().map(|page| page.publication.publish_at).collect();
    let created: Vec<DateTime<Utc>> = pages.iter().map(|page| page.created_at).collect();
    let inserted = query_scalar!(
        "insert into pages (id, account_id, folder_id, subdomain_id, slug, title, html, css, entry_template, metadata,
                            content_hash, is_published, publish_at, created_at, updated_at)
         select n.id, $1, n.folder_id, n.subdomain_id, n.slug, n.title, n.html, n.css, n.entry_template, n.metadata,
                n.content_hash, n.is_published, n.publish_at, n.created_at, date_trunc('milliseconds', n.created_at)
         from unnest($2::uuid[], $3::uuid[], $4::uuid[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[],
                     $10::jsonb[], $11::bytea[], $12::boolean[], $13::timestamptz[], $14::timestamptz[])
             as n (id, folder_id, subdomain_id, slug, title, html, css, entry_template, metadata, content_hash,
                   is_published, publish_at, created_at)
         on conflict (subdomain_id, slug) do nothing returning id",
        account_id,
        &ids,
        &folders as _,
        &subdomains,
        &slugs as _,
        &titles as _,
        &html as _,
        &css as _,
        &templates as _,
        &metadata,
        &hashes,
        &published,
        &due as _,
        &created,
    )
    .fetch_all(&mut *conn)
    .await?;
    // In the order of the slugs, because transactions of other accounts may insert the same ones.
    query!(
        "insert into short_addresses (slug, page_id)
         select slug, id from pages where account_id = $1 and id = any($2) order by slug on conflict do nothing",
        account_id,
        &inserted,
    )
    .execute(conn)
    .await?;
    Ok(inserted)
}

/// Locks a page of the account. Returns when it was last updated.
pub async fn lock_page(conn: &mut Conn, account_id: Uuid, id: Uuid) -> Result<Option<DateTime<Utc>>, Error> {
    usage::lock(conn, account_id).await?;
    let updated_at = query_scalar!(
        "select updated_at from pages where account_id = $1 and id = $2 for no key update",
        account_id,
        id
    )
    .fetch_optional(conn)
    .await?;
    Ok(updated_at)
}

/// Updates a page. `updated_at` rises by at least a millisecond even if the clock does not; new content creates a
/// version. Returns `false` if there is no such page.
pub async fn update_page(
    conn: &mut Conn,
    account_id: Uuid,
    id: Uuid,
    change: PageChange,
    now: DateTime<Utc>,
) -> Result<bool, Error> {
    usage::lock(conn, account_id).await?;
    let Some(current) = find_current(conn, account_id, id).await? else { return Ok(false) };
    let before = &current.content;
    let content = Content {
        title: change.title.unwrap_or_else(|| before.title.clone()),
        html: change.html.unwrap_or_else(|| before.html.clone()),
        css: change.css.unwrap_or_else(|| before.css.clone()),
        entry_template: change.entry_template.unwrap_or_else(|| before.entry_template.clone()),
        metadata: change.metadata.unwrap_or_else(|| before.metadata.clone()),
    };
    let hash = content.hash();
    let publication = current.publication.apply(change.publication, now);
    let folder_id = change.folder_id.unwrap_or(current.folder_id);
    let content_differs = current.content_hash.as_deref() != Some(hash.as_slice());
    // Unchanged texts are not sent, because Postgres would store them again.
    let other = |new: &str, old: &str| (new != old).then(|| new.to_owned());
    query!(
        "update pages set
            title = $3, html = coalesce($4, html), css = case when $5 then $6 else css end,
            entry_template = case when $7 then $8 else entry_template end, metadata = coalesce($9, metadata),
            content_hash = $10,
            is_published = $11, publish_at = $12, folder_id = $13,
            updated_at = greatest(date_trunc('milliseconds', $14::timestamptz),
                                  date_trunc('milliseconds', updated_at) + interval '1 millisecond')
         where account_id = $1 and id = $2",
        account_id,
        id,
        content.title,
        other(&content.html, &before.html),
        content.css != before.css,
        content.css,
        content.entry_template != before.entry_template,
        content.entry_template,
        (content.metadata != before.metadata).then(|| content.metadata.clone()),
        hash.as_slice(),
        publication.is_published,
        publication.publish_at,
        folder_id,
        now,
    )
    .execute(&mut *conn)
    .await?;
    if content_differs {
        let version = NewVersion { page_id: id, content: &content, deploy_id: change.deploy_id };
        insert_versions(conn, account_id, &[version], now).await?;
    }
    Ok(true)
}

async fn find_current(conn: &mut Conn, account_id: Uuid, id: Uuid) -> Result<Option<Current>, Error> {
    let row = query!(
        "select title, html, css, entry_template, metadata, content_hash, is_published, publish_at, folder_id
         from pages where account_id = $1 and id = $2 for no key update",
        account_id,
        id,
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.map(|row| Current {
        content: Content {
            title: row.title,
            html: row.html,
            css: row.css,
            entry_template: row.entry_template,
            metadata: row.metadata,
        },
        content_hash: row.content_hash,
        publication: Publication { is_published: row.is_published, publish_at: row.publish_at },
        folder_id: row.folder_id,
    }))
}
