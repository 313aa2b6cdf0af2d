//! Entries of pages. The page counts them, so that concurrent inserts can't exceed the limit.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use contract::Change;
use domain::entries::ENTRIES_MAX;
use domain::{Cursor, json_bytes};
use serde_json::Value;
use sqlx::{query, query_as, query_scalar};
use uuid::Uuid;

use crate::list_filter::collect_page;
use crate::{Conn, Error, ListPage};

/// An entry to store.
#[derive(Debug)]
pub struct NewEntry {
    pub id: Uuid,
    pub page_id: Uuid,
    /// An object that [`domain::entries::check_data`] accepts.
    pub data: Value,
    /// The submission it was created from, if any.
    pub submission_id: Option<Uuid>,
    pub created_at: DateTime<Utc>,
}

/// An entry of a page.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    pub id: Uuid,
    /// An object.
    pub data: Value,
    pub created_at: DateTime<Utc>,
}

/// The location of a changed page; caches of it must be invalidated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageLocation {
    pub subdomain_id: Uuid,
    pub slug: String,
    /// Path of the deployed file that the page shows, if any.
    pub path: Option<String>,
}

impl From<PageLocation> for Change {
    fn from(PageLocation { subdomain_id, slug, path }: PageLocation) -> Self {
        Self::Page { subdomain_id, slug, path }
    }
}

/// The result of inserting an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryOutcome {
    /// The entry is stored and counted.
    Stored(PageLocation),
    /// The page has reached its limit.
    Full,
    /// The page has no entry template.
    NoTemplate,
    /// The page does not exist.
    NoPage,
}

/// Inserts an entry if the page is below its limit. The caller must publish the change of the page.
pub async fn insert_entry(
    conn: &mut Conn,
    account_id: Uuid,
    entry: &NewEntry,
) -> Result<EntryOutcome, Error> {
    let counted = query_as!(
        PageLocation,
        "update pages set entry_count = entry_count + 1
         where account_id = $1 and id = $2 and entry_template is not null and entry_count < $3
         returning subdomain_id, slug, path",
        account_id,
        entry.page_id,
        ENTRIES_MAX,
    )
    .fetch_optional(&mut *conn)
    .await?;
    let Some(shown) = counted else { return find_rejection(conn, account_id, entry.page_id).await };
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

/// Inserts entries of many pages and accounts with one statement, each if its page is below its limit. Returns the results
/// in the same order; `None` for an entry whose page is locked by another transaction, for which it does not wait. The
/// caller must publish the changes of the pages.
pub async fn insert_entries(
    conn: &mut Conn,
    entries: &[(Uuid, NewEntry)],
) -> Result<Vec<Option<EntryOutcome>>, Error> {
    // A locked row is read as it is now, not as of the statement's begin, so concurrent batches can't exceed the limit.
    let stored = query!(
        r#"with input as materialized (
               select * from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::jsonb[], $5::uuid[], $6::timestamptz[])
                   with ordinality as i (id, account_id, page_id, data, submission_id, created_at, place)
           ), locked as materialized (
               select p.id, p.account_id, p.entry_count, p.subdomain_id, p.slug, p.path from pages p
               where exists (select from input i where i.page_id = p.id and i.account_id = p.account_id)
                 and p.entry_template is not null
               for no key update skip locked
           ), ranked as materialized (
               select i.*, l.entry_count + row_number() over (partition by l.id order by i.place) as number
               from input i join locked l on l.id = i.page_id and l.account_id = i.account_id
           ), fitting as materialized (
               select * from ranked where number <= $7
           ), counted as (
               update pages p set entry_count = p.entry_count + f.entries
               from (select page_id, count(*)::integer as entries from fitting group by page_id) f
               where p.id = f.page_id
           ), inserted as (
               insert into page_entries (id, account_id, page_id, data, submission_id, created_at)
               select id, account_id, page_id, data, submission_id, created_at from fitting
           )
           select f.id as "id!", l.subdomain_id, l.slug, l.path from fitting f join locked l on l.id = f.page_id"#,
        &column(entries, |entry| entry.id),
        &entries.iter().map(|(account_id, _)| *account_id).collect::<Vec<_>>(),
        &column(entries, |entry| entry.page_id),
        &column(entries, |entry| &entry.data) as _,
        &column(entries, |entry| entry.submission_id) as _,
        &column(entries, |entry| entry.created_at),
        i64::from(ENTRIES_MAX),
    )
    .fetch_all(&mut *conn)
    .await?;
    let mut stored: HashMap<Uuid, PageLocation> = stored
        .into_iter()
        .map(|row| (row.id, PageLocation { subdomain_id: row.subdomain_id, slug: row.slug, path: row.path }))
        .collect();
    let mut outcomes = Vec::with_capacity(entries.len());
    for (account_id, entry) in entries {
        outcomes.push(match stored.remove(&entry.id) {
            Some(shown) => Some(EntryOutcome::Stored(shown)),
            None => find_batch_rejection(conn, *account_id, entry.page_id).await?,
        });
    }
    Ok(outcomes)
}

/// Returns why a batch did not store an entry; `None` if its page was locked.
async fn find_batch_rejection(
    conn: &mut Conn,
    account_id: Uuid,
    page_id: Uuid,
) -> Result<Option<EntryOutcome>, Error> {
    let rejection = find_rejection(conn, account_id, page_id).await?;
    if rejection == EntryOutcome::Full && count_entries(conn, account_id, page_id).await? < ENTRIES_MAX {
        return Ok(None);
    }
    Ok(Some(rejection))
}

fn column<'a, T>(entries: &'a [(Uuid, NewEntry)], field: impl Fn(&'a NewEntry) -> T) -> Vec<T> {
    entries.iter().map(|(_, entry)| field(entry)).collect()
}

async fn find_rejection(conn: &mut Conn, account_id: Uuid, page_id: Uuid) -> Result<EntryOutcome, Error> {
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

/// Returns a page of the entries of a page, newest first: those after `after`, at most `limit`.
pub async fn list_entries(
    conn: &mut Conn,
    account_id: Uuid,
    page_id: Uuid,
    after: Option<Cursor>,
    limit: i64,
) -> Result<ListPage<Entry>, Error> {
    let entries = query_as!(
        Entry,
        "select id, data, created_at from page_entries
         where account_id = $1 and page_id = $2 and ($3::timestamptz is null or (created_at, id) < ($3, $4))
         order by created_at desc, id desc limit $5::bigint + 1",
        account_id,
        page_id,
        after.map(|after| after.created_at),
        after.map(|after| after.id),
        limit,
    )
    .fetch(conn);
    collect_page(entries, limit, |entry| json_bytes(&entry.data)).await
}

/// Returns the number of entries of a page; 0 if there is no such page.
pub async fn count_entries(conn: &mut Conn, account_id: Uuid, page_id: Uuid) -> Result<i32, Error> {
    let count =
        query_scalar!("select entry_count from pages where account_id = $1 and id = $2", account_id, page_id)
            .fetch_optional(conn)
            .await?;
    Ok(count.unwrap_or_default())
}

/// Deletes an entry. Returns the location of its page, or `None` if there is no such entry.
pub async fn delete_entry(
    conn: &mut Conn,
    account_id: Uuid,
    page_id: Uuid,
    id: Uuid,
) -> Result<Option<PageLocation>, Error> {
    // The page is locked first, as in an insert, so that the two can't deadlock. A separate statement, so that the next
    // one sees what was committed while this one waited.
    let shown = query_as!(
        PageLocation,
        "select subdomain_id, slug, path from pages where account_id = $1 and id = $2 for no key update",
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

/// Deletes the entries that were created from these submissions. Returns the locations of their pages. Archived entries
/// stay.
pub async fn delete_entries_of_submissions(
    conn: &mut Conn,
    account_id: Uuid,
    submission_ids: &[Uuid],
) -> Result<Vec<PageLocation>, Error> {
    // The pages are locked first, as in [`delete_entry`], and always in the same order.
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
         returning p.subdomain_id, p.slug, p.path",
        account_id,
        submission_ids,
        &pages,
    )
    .fetch_all(conn)
    .await?;
    Ok(shown)
}
