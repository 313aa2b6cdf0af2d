//! Entries of pages: counted by their page, so that no number of them at once passes the limit.

use chrono::{DateTime, Utc};
use domain::entries::ENTRIES_MAX;
use serde_json::Value;
use sqlx::{query, query_as, query_scalar};
use uuid::Uuid;

use crate::{Conn, Error};

/// An entry about to be stored.
#[derive(Debug)]
pub struct NewEntry {
    /// Its id.
    pub id: Uuid,
    /// The page it belongs to.
    pub page_id: Uuid,
    /// What it holds: an object, as [`domain::entries::check_data`] wants it.
    pub data: Value,
    /// The submission it is made of, if it is.
    pub submission_id: Option<Uuid>,
    /// Now.
    pub created_at: DateTime<Utc>,
}

/// An entry of a page.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Its id.
    pub id: Uuid,
    /// What it holds: an object.
    pub data: Value,
    /// When it was made.
    pub created_at: DateTime<Utc>,
}

/// Where a page is served whose entries have changed: edges are to be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageLocation {
    /// On which site.
    pub subdomain_id: Uuid,
    /// Under which slug.
    pub slug: String,
}

/// What became of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryOutcome {
    /// It is stored and counted.
    Stored(PageLocation),
    /// The page has as many as it may have.
    Full,
    /// The page has no template to show it by.
    NoTemplate,
    /// There is no such page (any more).
    NoPage,
}

/// Stores an entry if its page takes one more. Whoever calls it tells edges after the commit.
pub async fn insert_entry(
    conn: &mut Conn,
    account_id: Uuid,
    entry: &NewEntry,
) -> Result<EntryOutcome, Error> {
    let counted = query_as!(
        PageLocation,
        "update pages set entry_count = entry_count + 1
         where account_id = $1 and id = $2 and entry_template is not null and entry_count < $3
         returning subdomain_id, slug",
        account_id,
        entry.page_id,
        ENTRIES_MAX,
    )
    .fetch_optional(&mut *conn)
    .await?;
    let Some(shown) = counted else { return why_not(conn, account_id, entry.page_id).await };
    query!(
        "insert into page_entries (id, account_id, page_id, data, submission_id, created_at)
         values ($1, $2, $3, $4, $5, $6)",
        entry.id,
        account_id,
        entry.page_id,
        entry.data,
        entry.submission_id,
        entry.created_at,
    )
    .execute(conn)
    .await?;
    Ok(EntryOutcome::Stored(shown))
}

async fn why_not(conn: &mut Conn, account_id: Uuid, page_id: Uuid) -> Result<EntryOutcome, Error> {
    let has_template = query_scalar!(
        r#"select entry_template is not null as "has!" from pages where account_id = $1 and id = $2"#,
        account_id,
        page_id,
    )
    .fetch_optional(conn)
    .await?;
    Ok(match has_template {
        None => EntryOutcome::NoPage,
        Some(false) => EntryOutcome::NoTemplate,
        Some(true) => EntryOutcome::Full,
    })
}

/// The entries of a page of the account, newest first: at most 500.
pub async fn list_entries(conn: &mut Conn, account_id: Uuid, page_id: Uuid) -> Result<Vec<Entry>, Error> {
    let entries = query_as!(
        Entry,
        "select id, data, created_at from page_entries where account_id = $1 and page_id = $2
         order by created_at desc, id desc",
        account_id,
        page_id,
    )
    .fetch_all(conn)
    .await?;
    Ok(entries)
}

/// Deletes an entry of a page of the account; gives where the page is served, and nothing if there is no such entry.
pub async fn delete_entry(
    conn: &mut Conn,
    account_id: Uuid,
    page_id: Uuid,
    id: Uuid,
) -> Result<Option<PageLocation>, Error> {
    // The page first, as whoever adds one does: two can't wait for each other. And by a statement of its own: the
    // next one sees what was committed while this one waited.
    let shown = query_as!(
        PageLocation,
        "select subdomain_id, slug from pages where account_id = $1 and id = $2 for no key update",
        account_id,
        page_id,
    )
    .fetch_optional(&mut *conn)
    .await?;
    let deleted = query!(
        "delete from page_entries where account_id = $1 and page_id = $2 and id = $3",
        account_id,
        page_id,
        id,
    )
    .execute(&mut *conn)
    .await?;
    if deleted.rows_affected() == 0 {
        return Ok(None);
    }
    query!("update pages set entry_count = entry_count - 1 where id = $1", page_id).execute(conn).await?;
    Ok(shown)
}

/// Deletes the entries that were made of these submissions of the account; gives where their pages are served. Archived
/// ones stay.
pub async fn delete_entries_of_submissions(
    conn: &mut Conn,
    account_id: Uuid,
    submission_ids: &[Uuid],
) -> Result<Vec<PageLocation>, Error> {
    // The pages first, as in [`delete_entry`]; several of them always in the same order.
    let pages = query_scalar!(
        "select id from pages
         where account_id = $1 and id in (select page_id from page_entries where submission_id = any($2))
         order by id for no key update",
        account_id,
        submission_ids,
    )
    .fetch_all(&mut *conn)
    .await?;
    if pages.is_empty() {
        return Ok(Vec::new());
    }
    let shown = query_as!(
        PageLocation,
        "with gone as (
             delete from page_entries where account_id = $1 and submission_id = any($2) and page_id = any($3)
             returning page_id
         ), counted as (select page_id, count(*)::integer as entries from gone group by page_id)
         update pages p set entry_count = p.entry_count - c.entries from counted c where p.id = c.page_id
         returning p.subdomain_id, p.slug",
        account_id,
        submission_ids,
        &pages,
    )
    .fetch_all(conn)
    .await?;
    Ok(shown)
}
