//! Inserts and updates pages, each change with a version.

use chrono::{DateTime, Utc};
use domain::pages::{Content, Publication, PublicationChange};
use serde_json::Value;
use sqlx::{query, query_scalar};
use uuid::Uuid;

use super::read::find_id_by_slug;
use crate::versions::insert_version;
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

/// A page to insert, or to update if its slug exists.
#[derive(Debug)]
pub struct PageUpsert {
    /// Used only for a new page.
    pub id: Uuid,
    /// Used only for a new page.
    pub folder_id: Option<Uuid>,
    pub subdomain_id: Uuid,
    pub slug: String,
    pub title: String,
    pub html: String,
    /// `None` leaves an existing page's style sheet unchanged.
    pub css: Option<Option<String>>,
    /// `None` leaves an existing page's metadata unchanged.
    pub metadata: Option<Value>,
    /// `None` leaves an existing page unchanged and publishes a new one.
    pub is_published: Option<bool>,
    /// The deploy that writes it, if any.
    pub deploy_id: Option<Uuid>,
}

/// The result of an upsert.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpsertOutcome {
    /// The page was inserted.
    Created(Uuid),
    /// The page was changed.
    Updated(Uuid),
    /// The page was already identical; nothing was written.
    Unchanged(Uuid),
}

/// Whether an update without changes is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WriteMode {
    /// Writes it, so that `updated_at` rises.
    Always,
    /// Skips it.
    IfDifferent,
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
    let content = &page.content;
    let hash = content.hash();
    let inserted = query_scalar!(
        "insert into pages (id, account_id, folder_id, subdomain_id, slug, title, html, css, entry_template, metadata,
                            content_hash, is_published, publish_at, created_at, updated_at)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14,
                 date_trunc('milliseconds', $14::timestamptz))
         on conflict (subdomain_id, slug) do nothing returning id",
        page.id,
        account_id,
        page.folder_id,
        page.subdomain_id,
        page.slug,
        content.title,
        content.html,
        content.css,
        content.entry_template,
        content.metadata,
        hash.as_slice(),
        page.publication.is_published,
        page.publication.publish_at,
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
    .execute(&mut *conn)
    .await?;
    insert_version(conn, account_id, page.id, content, page.deploy_id, page.created_at).await?;
    Ok(true)
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
    Ok(edit(conn, account_id, id, change, now, WriteMode::Always).await?.is_some())
}

/// Inserts a page, or updates the one with its slug if it differs. The caller must count a new page in the same
/// transaction.
pub async fn upsert_page(
    conn: &mut Conn,
    account_id: Uuid,
    page: PageUpsert,
    now: DateTime<Utc>,
) -> Result<UpsertOutcome, Error> {
    usage::lock(conn, account_id).await?;
    let existing = find_id_by_slug(conn, account_id, page.subdomain_id, &page.slug).await?;
    let publication = PublicationChange { is_published: page.is_published, publish_at: None };
    if let Some(id) = existing {
        let change = PageChange {
            title: Some(page.title),
            html: Some(page.html),
            css: page.css,
            metadata: page.metadata,
            publication,
            deploy_id: page.deploy_id,
            ..PageChange::default()
        };
        let changed = edit(conn, account_id, id, change, now, WriteMode::IfDifferent).await?;
        return Ok(if changed == Some(true) {
            UpsertOutcome::Updated(id)
        } else {
            UpsertOutcome::Unchanged(id)
        });
    }
    let new = NewPage {
        id: page.id,
        folder_id: page.folder_id,
        subdomain_id: page.subdomain_id,
        slug: page.slug,
        content: Content {
            title: page.title,
            html: page.html,
            css: page.css.flatten(),
            entry_template: None,
            metadata: page.metadata.unwrap_or_else(|| Value::Object(serde_json::Map::new())),
        },
        publication: Publication::NEW.apply(publication, now),
        deploy_id: page.deploy_id,
        created_at: now,
    };
    insert_page(conn, account_id, &new).await?;
    Ok(UpsertOutcome::Created(new.id))
}

/// Updates a page. Returns whether it differed, or `None` if there is no such page.
async fn edit(
    conn: &mut Conn,
    account_id: Uuid,
    id: Uuid,
    change: PageChange,
    now: DateTime<Utc>,
    mode: WriteMode,
) -> Result<Option<bool>, Error> {
    usage::lock(conn, account_id).await?;
    let Some(current) = find_current(conn, account_id, id).await? else { return Ok(None) };
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
    let differs = content_differs || publication != current.publication || folder_id != current.folder_id;
    if mode == WriteMode::IfDifferent && !differs {
        return Ok(Some(false));
    }
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
        insert_version(conn, account_id, id, &content, change.deploy_id, now).await?;
    }
    Ok(Some(differs))
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
