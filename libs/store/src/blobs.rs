//! What the object store holds, and when it may let go of it.
//!
//! A blob's row is written before its bytes are, and goes after them, so that no bytes are ever without a row. Who
//! refers to a blob takes its row's lock ([`reference_blobs`]); who deletes its bytes holds that lock meanwhile
//! ([`lock_unreferenced`]): a deletion that races an upload of the same bytes comes before it or not at all.

use chrono::{DateTime, Utc};
use sqlx::{query, query_scalar};
use uuid::Uuid;

use crate::{Conn, Error};

/// Bytes, by what they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewBlob {
    /// The row's, if there is none yet.
    pub id: Uuid,
    /// Their digest.
    pub sha256: [u8; 32],
    /// How many.
    pub size_bytes: i64,
}

/// A blob that may be referred to in this transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReferencedBlob {
    /// The row.
    pub id: Uuid,
    /// Its digest.
    pub sha256: [u8; 32],
    /// Its row has only just been made: its bytes may be gone, and must be put again before the commit.
    pub is_new: bool,
}

/// A blob that nothing refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnreferencedBlob {
    /// The row.
    pub id: Uuid,
    /// Whose bytes.
    pub account_id: Uuid,
    /// Their digest.
    pub sha256: [u8; 32],
}

/// Announces bytes that are about to be stored. Should they never be referred to, they go some time after `until`.
/// Returns an error if the account no longer exists.
pub async fn insert_unreferenced(
    conn: &mut Conn,
    account_id: Uuid,
    blobs: &[NewBlob],
    until: DateTime<Utc>,
) -> Result<(), Error> {
    let (ids, digests, sizes) = columns(blobs);
    query!(
        "insert into blobs (id, account_id, sha256, size_bytes, look_at)
         select b.id, $1, b.sha256, b.size_bytes, $5 from unnest($2::uuid[], $3::bytea[], $4::bigint[])
             as b (id, sha256, size_bytes) order by b.sha256
         on conflict (account_id, sha256) do update set
             look_at = case when blobs.look_at is null then null else greatest(blobs.look_at, excluded.look_at) end",
        account_id,
        &ids,
        &digests,
        &sizes,
        until,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Takes the rows of these bytes, so that they can be referred to: nobody deletes them before the end of the
/// transaction, nor while something refers to them.
/// Returns an error if the account no longer exists.
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

/// Something that referred to these does so no more: if nothing else does, they go.
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

/// The same by their digests: something was to refer to them, and does not.
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

/// Takes one blob that nothing refers to, for this transaction; those found that something does refer to are left
/// alone from then on. None if there is none that somebody has let go of by now.
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
        // A statement of its own: it sees what was committed while the row was waited for.
        let is_needed = query_scalar!(
            r#"select exists (select from assets where blob_id = $1)
                   or exists (select from deploys where blob_id = $1)
                   or exists (select from deploy_files where blob_id = $1)
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

/// The bytes are gone.
/// Returns an error if the blob is still referenced.
pub async fn delete_blob(conn: &mut Conn, account_id: Uuid, id: Uuid) -> Result<(), Error> {
    query!("delete from blobs where account_id = $1 and id = $2", account_id, id).execute(conn).await?;
    Ok(())
}

/// The bytes couldn't be deleted: they are tried again from `until` on.
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

/// Orders that all bytes of an account that is about to go be deleted from `now` on.
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

/// Takes a due purge for this transaction: whose bytes, and whether they were deleted before.
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

/// The bytes of an account couldn't all be deleted: they are tried again from `until` on.
pub async fn postpone_purge(conn: &mut Conn, account_id: Uuid, until: DateTime<Utc>) -> Result<(), Error> {
    query!("update blob_purges set due_at = $2 where account_id = $1", account_id, until)
        .execute(conn)
        .await?;
    Ok(())
}

/// The bytes of an account are gone. Something may have been under way, so they are deleted once more at `again_at`;
/// without it, this was that time.
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
