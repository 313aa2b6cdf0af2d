//! The contents of the object store and their reference checks.
//!
//! The row of a blob is inserted before its bytes are stored and deleted after them, so no bytes are ever without a
//! row. A transaction that references a blob locks its row ([`reference_blobs`]); the one that deletes its bytes holds
//! the same lock ([`lock_unreferenced`]). So a deletion that races an upload of the same bytes either precedes it or
//! does not happen.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use sqlx::{query, query_scalar};
use uuid::Uuid;

use crate::{Conn, Error};

/// A blob to insert, identified by its digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewBlob {
    /// The id of the row if it is new.
    pub id: Uuid,
    pub sha256: [u8; 32],
    pub size_bytes: i64,
}

/// A blob that this transaction may reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReferencedBlob {
    pub id: Uuid,
    pub sha256: [u8; 32],
    /// The row was just inserted. The bytes may be missing and must be stored before the commit.
    pub is_new: bool,
}

/// A blob without references.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnreferencedBlob {
    pub id: Uuid,
    pub account_id: Uuid,
    pub sha256: [u8; 32],
}

/// Registers bytes that are about to be stored. If nothing references them, they are deleted some time after `until`.
/// Returns the digests that were registered before: their bytes may be stored already. Returns an error if the account no
/// longer exists.
pub async fn insert_unreferenced(
    conn: &mut Conn,
    account_id: Uuid,
    blobs: &[NewBlob],
    until: DateTime<Utc>,
) -> Result<BTreeSet<[u8; 32]>, Error> {
    let (ids, digests, sizes) = columns(blobs);
    let rows = query!(
        r#"insert into blobs (id, account_id, sha256, size_bytes, look_at)
         select b.id, $1, b.sha256, b.size_bytes, $5 from unnest($2::uuid[], $3::bytea[], $4::bigint[])
             as b (id, sha256, size_bytes) order by b.sha256
         on conflict (account_id, sha256) do update set
             look_at = case when blobs.look_at is null then null else greatest(blobs.look_at, excluded.look_at) end
         returning sha256, xmax = 0 as "is_new!""#,
        account_id,
        &ids,
        &digests,
        &sizes,
        until,
    )
    .fetch_all(conn)
    .await?;
    rows.into_iter().filter(|row| !row.is_new).map(|row| digest(&row.sha256)).collect()
}

/// Locks the rows of these bytes so that they can be referenced. They are not deleted before the end of the
/// transaction, nor while a reference exists. Returns an error if the account no longer exists.
pub async fn reference_blobs(
    conn: &mut Conn,
    account_id: Uuid,
    blobs: &[NewBlob],
) -> Result<Vec<ReferencedBlob>, Error> {
    let (ids, digests, sizes) = columns(blobs);
    let rows = query!(
        r#"insert into blobs (id, account_id, sha256, size_bytes)
           select b.id, $1, b.sha256, b.size_bytes from unnest($2::uuid[], $3::bytea[], $4::bigint[])
               as b (id, sha256, size_bytes) order by b.sha256
           on conflict (account_id, sha256) do update set look_at = null
           returning id, sha256, xmax = 0 as "is_new!""#,
        account_id,
        &ids,
        &digests,
        &sizes,
    )
    .fetch_all(conn)
    .await?;
    let settled = |id, sha256: Vec<u8>, is_new| Ok(ReferencedBlob { id, sha256: digest(&sha256)?, is_new });
    rows.into_iter().map(|row| settled(row.id, row.sha256, row.is_new)).collect()
}

/// Removes a reference to each of these blobs. Those without other references will be deleted.
pub async fn release_blobs(
    conn: &mut Conn,
    account_id: Uuid,
    ids: &[Uuid],
    now: DateTime<Utc>,
) -> Result<(), Error> {
    query!(
        "update blobs set look_at = $3 where id in (
             select id from blobs where account_id = $1 and id = any($2) order by sha256 for update)",
        account_id,
        ids,
        now,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Like [`release_blobs`], by digest, for bytes that were registered and then not referenced.
pub async fn release_digests(
    conn: &mut Conn,
    account_id: Uuid,
    digests: &[[u8; 32]],
    now: DateTime<Utc>,
) -> Result<(), Error> {
    let digests: Vec<Vec<u8>> = digests.iter().map(|digest| digest.to_vec()).collect();
    let ids = query_scalar!(
        "select id from blobs where account_id = $1 and sha256 = any($2)",
        account_id,
        &digests,
    )
    .fetch_all(&mut *conn)
    .await?;
    release_blobs(conn, account_id, &ids, now).await
}

/// Locks one unreferenced blob that is due for deletion. Blobs that turn out to be referenced are taken off the list on
/// the way. Returns `None` if none is due.
pub async fn lock_unreferenced(
    conn: &mut Conn,
    now: DateTime<Utc>,
) -> Result<Option<UnreferencedBlob>, Error> {
    loop {
        let row = query!(
            "select id, account_id, sha256 from blobs where look_at <= $1
             order by look_at limit 1 for update skip locked",
            now,
        )
        .fetch_optional(&mut *conn)
        .await?;
        let Some(row) = row else { return Ok(None) };
        // A separate statement sees what was committed while the previous one waited for the row.
        let is_needed = query_scalar!(
            r#"select exists (select from assets where blob_id = $1)
                   or exists (select from deploys where blob_id = $1)
                   or exists (select from deploy_files where blob_id = $1)
                   or exists (select from deploy_sources where blob_id = $1)
                   or exists (select from form_files where blob_id = $1) as "is_needed!""#,
            row.id,
        )
        .fetch_one(&mut *conn)
        .await?;
        if !is_needed {
            let (id, account_id) = (row.id, row.account_id);
            return Ok(Some(UnreferencedBlob { id, account_id, sha256: digest(&row.sha256)? }));
        }
        query!("update blobs set look_at = null where id = $1", row.id).execute(&mut *conn).await?;
    }
}

/// Deletes the row of a blob after its bytes. Returns an error if the blob is still referenced.
pub async fn delete_blob(conn: &mut Conn, account_id: Uuid, id: Uuid) -> Result<(), Error> {
    query!("delete from blobs where account_id = $1 and id = $2", account_id, id).execute(conn).await?;
    Ok(())
}

/// Postpones the deletion of a blob after a failure of the object store.
pub async fn postpone_blob(
    conn: &mut Conn,
    account_id: Uuid,
    id: Uuid,
    until: DateTime<Utc>,
) -> Result<(), Error> {
    query!("update blobs set look_at = $3 where account_id = $1 and id = $2", account_id, id, until)
        .execute(conn)
        .await?;
    Ok(())
}

/// Schedules the deletion of all bytes of an account that is about to be deleted.
pub async fn insert_purge(conn: &mut Conn, account_id: Uuid, now: DateTime<Utc>) -> Result<(), Error> {
    query!(
        "insert into blob_purges (account_id, due_at) values ($1, $2)
         on conflict (account_id) do update set due_at = excluded.due_at",
        account_id,
        now,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Locks a due purge. Returns its account and whether the bytes were deleted once before.
pub async fn lock_due_purge(conn: &mut Conn, now: DateTime<Utc>) -> Result<Option<(Uuid, bool)>, Error> {
    let row = query!(
        "select account_id, deleted_at is not null as \"again!\" from blob_purges where due_at <= $1
         order by due_at limit 1 for update skip locked",
        now,
    )
    .fetch_optional(conn)
    .await?;
    Ok(row.map(|row| (row.account_id, row.again)))
}

/// Postpones the deletion of an account's bytes after a failure.
pub async fn postpone_purge(conn: &mut Conn, account_id: Uuid, until: DateTime<Utc>) -> Result<(), Error> {
    query!("update blob_purges set due_at = $2 where account_id = $1", account_id, until)
        .execute(conn)
        .await?;
    Ok(())
}

/// Marks the bytes of an account as deleted. An upload may have been in progress, so they are deleted once more at
/// `again_at`; `None` ends the purge.
pub async fn finish_purge(
    conn: &mut Conn,
    account_id: Uuid,
    now: DateTime<Utc>,
    again_at: Option<DateTime<Utc>>,
) -> Result<(), Error> {
    let done = match again_at {
        Some(again_at) => query!(
            "update blob_purges set deleted_at = $2, due_at = $3 where account_id = $1",
            account_id,
            now,
            again_at,
        ),
        None => query!("delete from blob_purges where account_id = $1", account_id),
    };
    done.execute(conn).await?;
    Ok(())
}

fn columns(blobs: &[NewBlob]) -> (Vec<Uuid>, Vec<Vec<u8>>, Vec<i64>) {
    let mut columns = (Vec::new(), Vec::new(), Vec::new());
    for blob in blobs {
        columns.0.push(blob.id);
        columns.1.push(blob.sha256.to_vec());
        columns.2.push(blob.size_bytes);
    }
    columns
}

pub(crate) fn digest(bytes: &[u8]) -> Result<[u8; 32], Error> {
    bytes.try_into().map_err(|_| Error::Unreadable {
        table: "blobs",
        column: "sha256",
        value: format!("{} bytes", bytes.len()),
    })
}
