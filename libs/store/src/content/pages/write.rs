//! Writing pages: made, edited, or whichever of the two is needed; each with the version it makes.

use chrono::{DateTime, Utc};
use domain::pages::{Content, Publication, Wish};
use serde_json::Value;
use sqlx::{query, query_scalar};
use uuid::Uuid;

use super::read::find_id_by_slug;
use crate::versions::insert_version;
use crate::{Conn, Error, usage};

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
    /// What it says.
    pub content: Content,
    /// Whether visitors see it, and when they will.
    pub publication: Publication,
    /// The deploy that writes it, if one does.
    pub deploy_id: Option<Uuid>,
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
    /// New template of entries, or none at all.
    pub entry_template: Option<Option<String>>,
    /// New notes.
    pub metadata: Option<Value>,
    /// Whether visitors see it, and when they will.
    pub publication: Wish,
    /// Another folder, or none at all.
    pub folder_id: Option<Option<Uuid>>,
    /// The deploy that writes it, if one does.
    pub deploy_id: Option<Uuid>,
}

impl From<Content> for PageChange {
    /// The page says just this: as when it goes back to a version.
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

/// A page that is to be there, whether it is or not.
#[derive(Debug)]
pub struct PageUpsert {
    /// Its id if it is new.
    pub id: Uuid,
    /// The folder it lies in if it is new.
    pub folder_id: Option<Uuid>,
    /// Where it is served.
    pub subdomain_id: Uuid,
    /// Under which slug.
    pub slug: String,
    /// Its title.
    pub title: String,
    /// Its document.
    pub html: String,
    /// Its style sheet; `None` leaves that of a page there is.
    pub css: Option<Option<String>>,
    /// The owner's own notes; `None` leaves those of a page there is.
    pub metadata: Option<Value>,
    /// Whether visitors see it; `None` leaves a page there is as it is, and shows a new one.
    pub is_published: Option<bool>,
    /// The deploy that writes it, if one does.
    pub deploy_id: Option<Uuid>,
}

/// What became of a page that is to be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpsertOutcome {
    /// It is new.
    Created(Uuid),
    /// It was there, and other.
    Updated(Uuid),
    /// It was there just so; nothing was written.
    Unchanged(Uuid),
}

/// Whether an edit that changes nothing is one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Edit {
    /// Yes: `updated_at` rises.
    Always,
    /// No.
    IfOther,
}

/// A page as it is when it is about to be changed.
struct Current {
    content: Content,
    content_hash: Option<Vec<u8>>,
    publication: Publication,
    folder_id: Option<Uuid>,
}

/// Stores a page with its first version and, if its slug is the first of its kind, gives it the bare address.
/// `false` and nothing changed if the subdomain already has a page with that slug.
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

/// Takes a page of the account for this transaction; gives when it was last edited.
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

/// Edits a page of the account. Its `updated_at` rises by at least a millisecond, whatever the clock says; new
/// content makes a version. `false` if there is no such page.
pub async fn update_page(
    conn: &mut Conn,
    account_id: Uuid,
    id: Uuid,
    change: PageChange,
    now: DateTime<Utc>,
) -> Result<bool, Error> {
    Ok(edit(conn, account_id, id, change, now, Edit::Always).await?.is_some())
}

/// Makes a page, or edits the one that has its slug if that is other. Whoever calls it counts a new one in the same
/// transaction.
pub async fn upsert_page(
    conn: &mut Conn,
    account_id: Uuid,
    page: PageUpsert,
    now: DateTime<Utc>,
) -> Result<UpsertOutcome, Error> {
    usage::lock(conn, account_id).await?;
    let existing = find_id_by_slug(conn, account_id, page.subdomain_id, &page.slug).await?;
    let publication = Wish { is_published: page.is_published, publish_at: None };
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
        let changed = edit(conn, account_id, id, change, now, Edit::IfOther).await?;
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
        publication: Publication::NEW.after(publication, now),
        deploy_id: page.deploy_id,
        created_at: now,
    };
    insert_page(conn, account_id, &new).await?;
    Ok(UpsertOutcome::Created(new.id))
}

/// Edits a page; gives whether it was other before, and nothing if there is none.
async fn edit(
    conn: &mut Conn,
    account_id: Uuid,
    id: Uuid,
    change: PageChange,
    now: DateTime<Utc>,
    which: Edit,
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
    let publication = current.publication.after(change.publication, now);
    let folder_id = change.folder_id.unwrap_or(current.folder_id);
    let says_other = current.content_hash.as_deref() != Some(hash.as_slice());
    let is_other = says_other || publication != current.publication || folder_id != current.folder_id;
    if which == Edit::IfOther && !is_other {
        return Ok(Some(false));
    }
    // A text that stays is not sent: it would be stored again.
    let other = |new: &str, old: &str| (new != old).then(|| new.to_owned());
    query!(
        "update pages set
            title = $3, html = coalesce($4, html), css = case when $5 then $6 else css end,
            entry_template = case when $7 then $8 else entry_template end, metadata = $9, content_hash = $10,
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
        content.metadata,
        hash.as_slice(),
        publication.is_published,
        publication.publish_at,
        folder_id,
        now,
    )
    .execute(&mut *conn)
    .await?;
    if says_other {
        insert_version(conn, account_id, id, &content, change.deploy_id, now).await?;
    }
    Ok(Some(is_other))
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
