//! Archived entries of deleted pages. They can be restored to any page of the account for a while.

use chrono::{DateTime, Utc};
use domain::entries::ENTRIES_MAX;
use sqlx::{query, query_as, query_scalar};
use uuid::Uuid;

use crate::list_filter::sorted_rows;
use crate::pages::{PageChange, lock_page, update_page};
use crate::{Conn, Error, ListFilter};

/// What an archived entry counts beside its data.
const ENTRY_BYTES: i32 = 100;

/// An archive without its entries, as in a list.
#[derive(Debug, Clone)]
pub struct Archive {
    pub id: Uuid,
    /// The deleted page.
    pub page_id: Uuid,
    pub slug: String,
    /// The subdomain that served the page.
    pub subdomain_id: Uuid,
    pub folder_id: Option<Uuid>,
    pub has_template: bool,
    pub entry_count: i64,
    /// The display name of the caller who deleted the page.
    pub deleted_by: String,
    pub created_at: DateTime<Utc>,
}

/// The result of restoring an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestoreOutcome {
    Done {
        /// Entries that were added to the page.
        entries: i64,
        /// Entries of the page now.
        total: i64,
        /// Whether the page got the archive's template.
        template: bool,
    },
    /// The page would exceed its limit with this many entries; nothing was changed.
    TooMany(i64),
    /// The page does not exist.
    NoPage,
}

/// Prevents other transactions from archiving or restoring entries of the account until this one ends.
pub(crate) async fn lock_entry_moves(conn: &mut Conn, account_id: Uuid) -> Result<(), Error> {
    query!("select pg_advisory_xact_lock(hashtextextended($1, 20))", account_id.to_string())
        .fetch_one(conn)
        .await?;
    Ok(())
}

/// Archives the entries of a page that is about to be deleted. Returns how many.
pub async fn insert_archive(
    conn: &mut Conn,
    account_id: Uuid,
    page_id: Uuid,
    id: Uuid,
    deleted_by: &str,
    now: DateTime<Utc>,
) -> Result<u64, Error> {
    lock_entry_moves(conn, account_id).await?;
    // From here on no entry can be added.
    lock_page(conn, account_id, page_id).await?;
    let inserted = query!(
        "insert into entry_archives (id, account_id, page_id, slug, subdomain_id, folder_id, entry_template,
                                     deleted_by, created_at, bytes)
         select $3, account_id, id, slug, subdomain_id, folder_id, entry_template, $4, $5,
                coalesce(octet_length(entry_template), 0)
                + (select coalesce(sum(octet_length(data::text) + $6::integer), 0) from page_entries where page_id = $2)
         from pages
         where account_id = $1 and id = $2 and entry_count > 0",
        account_id,
        page_id,
        id,
        deleted_by,
        now,
        ENTRY_BYTES,
    )
    .execute(&mut *conn)
    .await?;
    if inserted.rows_affected() == 0 {
        return Ok(0);
    }
    let archived = query!(
        "insert into archived_entries (archive_id, id, data, submission_id, created_at)
         select $3, id, data, submission_id, created_at from page_entries where account_id = $1 and page_id = $2",
        account_id,
        page_id,
        id,
    )
    .execute(conn)
    .await?;
    Ok(archived.rows_affected())
}

/// Returns the size of all archives of the account.
pub async fn sum_bytes(conn: &mut Conn, account_id: Uuid) -> Result<i64, Error> {
    let bytes = query_scalar!(
        r#"select coalesce(sum(bytes), 0)::bigint as "bytes!" from entry_archives where account_id = $1"#,
        account_id,
    )
    .fetch_one(conn)
    .await?;
    Ok(bytes)
}

/// Returns the account's archives. The filter's folder and ids are those of the deleted pages.
pub async fn list_archives(
    conn: &mut Conn,
    account_id: Uuid,
    filter: &ListFilter,
) -> Result<Vec<Archive>, Error> {
    Ok(sorted_rows!(
        Archive,
        conn,
        account_id,
        filter,
        r#"select id, page_id, slug, subdomain_id, folder_id, entry_template is not null as "has_template!",
                  (select count(*) from archived_entries where archive_id = a.id) as "entry_count!", deleted_by,
                  created_at
           from entry_archives a
           where account_id = $1 and ($2::uuid is null or folder_id = $2)
             and ($3::uuid[] is null or page_id = any($3))"#,
        "created_at",
        "id"
    )?)
}

/// Returns an archive of the account.
pub async fn find_archive(conn: &mut Conn, account_id: Uuid, id: Uuid) -> Result<Option<Archive>, Error> {
    let archive = query_as!(
        Archive,
        r#"select id, page_id, slug, subdomain_id, folder_id, entry_template is not null as "has_template!",
                  (select count(*) from archived_entries where archive_id = a.id) as "entry_count!", deleted_by,
                  created_at
           from entry_archives a where account_id = $1 and id = $2"#,
        account_id,
        id,
    )
    .fetch_optional(conn)
    .await?;
    Ok(archive)
}

/// Adds the entries of an archive to a page. Entries that the page already has stay unchanged, so the call is
/// idempotent. A page without a template gets the archive's. The archive itself stays.
pub async fn restore_entries(
    conn: &mut Conn,
    account_id: Uuid,
    page_id: Uuid,
    archive_id: Uuid,
    now: DateTime<Utc>,
) -> Result<RestoreOutcome, Error> {
    lock_entry_moves(conn, account_id).await?;
    if lock_page(conn, account_id, page_id).await?.is_none() {
        return Ok(RestoreOutcome::NoPage);
    }
    let total = query_scalar!(
        r#"select p.entry_count + (
             select count(*) from archived_entries a join entry_archives x on x.id = a.archive_id
             where x.account_id = $1 and x.id = $3
               and not exists (select from page_entries e where e.page_id = $2 and e.id = a.id)) as "total!"
           from pages p where p.account_id = $1 and p.id = $2"#,
        account_id,
        page_id,
        archive_id,
    )
    .fetch_one(&mut *conn)
    .await?;
    if total > i64::from(ENTRIES_MAX) {
        return Ok(RestoreOutcome::TooMany(total));
    }
    let inserted = query!(
        "insert into page_entries (id, account_id, page_id, data, submission_id, created_at)
         select a.id, $1, $2, a.data, a.submission_id, a.created_at
         from archived_entries a join entry_archives x on x.id = a.archive_id where x.account_id = $1 and x.id = $3
         on conflict (page_id, id) do nothing",
        account_id,
        page_id,
        archive_id,
    )
    .execute(&mut *conn)
    .await?;
    query!(
        "update pages set entry_count = (select count(*) from page_entries where page_id = $2)
         where account_id = $1 and id = $2",
        account_id,
        page_id,
    )
    .execute(&mut *conn)
    .await?;
    let template = query_scalar!(
        r#"select x.entry_template as "template!" from entry_archives x join pages p on p.account_id = x.account_id
           where x.account_id = $1 and x.id = $3 and x.entry_template is not null
             and p.id = $2 and p.entry_template is null"#,
        account_id,
        page_id,
        archive_id,
    )
    .fetch_optional(&mut *conn)
    .await?;
    let restores_template = template.is_some();
    if restores_template {
        let change = PageChange { entry_template: Some(template), ..PageChange::default() };
        update_page(conn, account_id, page_id, change, now).await?;
    }
    let entries = i64::try_from(inserted.rows_affected()).unwrap_or(total);
    Ok(RestoreOutcome::Done { entries, total, template: restores_template })
}

/// Deletes up to `limit` archives created before `before`. Returns how many; fewer than `limit` means that none are
/// left.
pub async fn delete_expired(conn: &mut Conn, before: DateTime<Utc>, limit: i64) -> Result<u64, Error> {
    let deleted = query!(
        "delete from entry_archives where id in (
           select id from entry_archives where created_at < $1 order by created_at limit $2
           for update skip locked)",
        before,
        limit,
    )
    .execute(conn)
    .await?;
    Ok(deleted.rows_affected())
}
