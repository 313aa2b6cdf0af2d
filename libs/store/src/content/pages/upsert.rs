//! Inserts or updates pages by slug. Many pages take few statements, because the account's lock is held meanwhile.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use domain::pages::{Content, Hash, Publication, PublicationChange};
use serde_json::{Map, Value};
use sqlx::query;
use uuid::Uuid;

use super::write::{NewPage, insert_pages};
use crate::versions::{NewVersion, insert_versions};
use crate::{Conn, Error, usage};

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

/// The stored state before an update, without the HTML.
struct Current {
    id: Uuid,
    css: Option<String>,
    entry_template: Option<String>,
    metadata: Value,
    content_hash: Option<Vec<u8>>,
    publication: Publication,
}

/// A page that differs from the stored one.
struct ChangedPage {
    id: Uuid,
    content: Content,
    content_hash: Hash,
    publication: Publication,
    /// Whether the content differs too, which creates a version.
    has_new_content: bool,
    deploy_id: Option<Uuid>,
}

/// Inserts a page, or updates the one with its slug if it differs. The caller must count a new page in the same
/// transaction.
pub async fn upsert_page(
    conn: &mut Conn,
    account_id: Uuid,
    page: PageUpsert,
    now: DateTime<Utc>,
) -> Result<UpsertOutcome, Error> {
    let mut outcomes = upsert_pages(conn, account_id, vec![page], now).await?;
    outcomes.pop().ok_or(Error::Database(sqlx::Error::RowNotFound))
}

/// What an upsert writes.
struct UpsertPlan {
    outcomes: Vec<UpsertOutcome>,
    new: Vec<NewPage>,
    changed: Vec<ChangedPage>,
}

/// Returns the outcomes that [`upsert_pages`] would have now. Writes nothing.
pub async fn compare_pages(
    conn: &mut Conn,
    account_id: Uuid,
    pages: Vec<PageUpsert>,
    now: DateTime<Utc>,
) -> Result<Vec<UpsertOutcome>, Error> {
    Ok(plan(conn, account_id, pages, now).await?.outcomes)
}

/// Like [`upsert_page`], for many pages with different slugs. Returns their outcomes in the same order.
pub async fn upsert_pages(
    conn: &mut Conn,
    account_id: Uuid,
    pages: Vec<PageUpsert>,
    now: DateTime<Utc>,
) -> Result<Vec<UpsertOutcome>, Error> {
    let UpsertPlan { outcomes, new, changed } = plan(conn, account_id, pages, now).await?;
    insert_pages(conn, account_id, &new.iter().collect::<Vec<_>>()).await?;
    if !changed.is_empty() {
        update_pages(conn, account_id, &changed, now).await?;
    }
    let of_new = new.iter().map(|page| NewVersion {
        page_id: page.id,
        content: &page.content,
        deploy_id: page.deploy_id,
    });
    let of_changed = changed.iter().filter(|page| page.has_new_content).map(|page| NewVersion {
        page_id: page.id,
        content: &page.content,
        deploy_id: page.deploy_id,
    });
    insert_versions(conn, account_id, &of_new.chain(of_changed).collect::<Vec<_>>(), now).await?;
    Ok(outcomes)
}

/// Compares pages with the stored ones, under the account's lock.
async fn plan(
    conn: &mut Conn,
    account_id: Uuid,
    pages: Vec<PageUpsert>,
    now: DateTime<Utc>,
) -> Result<UpsertPlan, Error> {
    usage::lock(conn, account_id).await?;
    let mut stored = find_current(conn, account_id, &pages).await?;
    let (mut outcomes, mut new, mut changed) = (Vec::with_capacity(pages.len()), Vec::new(), Vec::new());
    for page in pages {
        let publication = PublicationChange { is_published: page.is_published, publish_at: None };
        let outcome = match stored.remove(&(page.subdomain_id, page.slug.clone())) {
            None => {
                let id = page.id;
                new.push(new_page(page, Publication::NEW.apply(publication, now), now));
                UpsertOutcome::Created(id)
            }
            Some(current) => {
                let (id, publication) = (current.id, current.publication.apply(publication, now));
                match change(page, current, publication) {
                    None => UpsertOutcome::Unchanged(id),
                    Some(change) => {
                        changed.push(change);
                        UpsertOutcome::Updated(id)
                    }
                }
            }
        };
        outcomes.push(outcome);
    }
    Ok(UpsertPlan { outcomes, new, changed })
}

fn new_page(page: PageUpsert, publication: Publication, now: DateTime<Utc>) -> NewPage {
    NewPage {
        id: page.id,
        folder_id: page.folder_id,
        subdomain_id: page.subdomain_id,
        slug: page.slug,
        content: Content {
            title: page.title,
            html: page.html,
            css: page.css.flatten(),
            entry_template: None,
            metadata: page.metadata.unwrap_or_else(|| Value::Object(Map::new())),
        },
        publication,
        deploy_id: page.deploy_id,
        created_at: now,
    }
}

/// Returns `None` if the page is identical to the stored one.
fn change(page: PageUpsert, current: Current, publication: Publication) -> Option<ChangedPage> {
    let content = Content {
        title: page.title,
        html: page.html,
        css: page.css.unwrap_or(current.css),
        entry_template: current.entry_template,
        metadata: page.metadata.unwrap_or(current.metadata),
    };
    let content_hash = content.hash();
    let has_new_content = current.content_hash.as_deref() != Some(content_hash.as_slice());
    let differs = has_new_content || publication != current.publication;
    let deploy_id = page.deploy_id;
    differs.then_some(ChangedPage {
        id: current.id,
        content,
        content_hash,
        publication,
        has_new_content,
        deploy_id,
    })
}

/// Returns the stored pages by subdomain and slug.
async fn find_current(
    conn: &mut Conn,
    account_id: Uuid,
    pages: &[PageUpsert],
) -> Result<HashMap<(Uuid, String), Current>, Error> {
    let subdomains: Vec<Uuid> = pages.iter().map(|page| page.subdomain_id).collect();
    let slugs: Vec<&str> = pages.iter().map(|page| page.slug.as_str()).collect();
    let rows = query!(
        "select id, subdomain_id, slug, css, entry_template, metadata, content_hash, is_published, publish_at
         from pages where account_id = $1
           and (subdomain_id, slug) in (select * from unnest($2::uuid[], $3::text[])) for no key update",
        account_id,
        &subdomains,
        &slugs as _,
    )
    .fetch_all(conn)
    .await?;
    let current = rows.into_iter().map(|row| {
        let current = Current {
            id: row.id,
            css: row.css,
            entry_template: row.entry_template,
            metadata: row.metadata,
            content_hash: row.content_hash,
            publication: Publication { is_published: row.is_published, publish_at: row.publish_at },
        };
        ((row.subdomain_id, row.slug), current)
    });
    Ok(current.collect())
}

/// Updates pages. `updated_at` rises by at least a millisecond even if the clock does not.
async fn update_pages(
    conn: &mut Conn,
    account_id: Uuid,
    pages: &[ChangedPage],
    now: DateTime<Utc>,
) -> Result<(), Error> {
    let ids: Vec<Uuid> = pages.iter().map(|page| page.id).collect();
    let titles: Vec<&str> = pages.iter().map(|page| page.content.title.as_str()).collect();
    // Unchanged texts are not sent, and one that turns out to be equal keeps its stored value.
    let html: Vec<Option<&str>> =
        pages.iter().map(|page| page.has_new_content.then_some(page.content.html.as_str())).collect();
    let css: Vec<Option<&str>> = pages.iter().map(|page| page.content.css.as_deref()).collect();
    let metadata: Vec<Value> = pages.iter().map(|page| page.content.metadata.clone()).collect();
    let hashes: Vec<Vec<u8>> = pages.iter().map(|page| page.content_hash.to_vec()).collect();
    let published: Vec<bool> = pages.iter().map(|page| page.publication.is_published).collect();
    let due: Vec<Option<DateTime<Utc>>> = pages.iter().map(|page| page.publication.publish_at).collect();
    query!(
        "update pages p set
            title = n.title, html = coalesce(nullif(n.html, p.html), p.html), css = n.css,
            metadata = coalesce(nullif(n.metadata, p.metadata), p.metadata), content_hash = n.content_hash,
            is_published = n.is_published, publish_at = n.publish_at,
            updated_at = greatest(date_trunc('milliseconds', $10::timestamptz),
                                  date_trunc('milliseconds', p.updated_at) + interval '1 millisecond')
         from unnest($2::uuid[], $3::text[], $4::text[], $5::text[], $6::jsonb[], $7::bytea[], $8::boolean[],
                     $9::timestamptz[])
             as n (id, title, html, css, metadata, content_hash, is_published, publish_at)
         where p.account_id = $1 and p.id = n.id",
        account_id,
        &ids,
        &titles as _,
        &html as _,
        &css as _,
        &metadata,
        &hashes,
        &published,
        &due as _,
        now,
    )
    .execute(conn)
    .await?;
    Ok(())
}
