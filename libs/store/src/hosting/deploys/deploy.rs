//! Sites from a zip: how far each deploy is. What it holds stands in [`files`], what it did to pages in [`undo`].

use chrono::{DateTime, Utc};
use sqlx::{query, query_scalar};
use uuid::Uuid;

use crate::{Conn, Error, blobs};

/// How far a deploy is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Its zip is to come.
    Presigned,
    /// Its zip is here.
    Uploaded,
    /// It is published, or was until another one was.
    Processed,
    /// It was undone.
    RolledBack,
}

impl Status {
    /// As the database and the API write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Presigned => "presigned",
            Self::Uploaded => "uploaded",
            Self::Processed => "processed",
            Self::RolledBack => "rolled_back",
        }
    }

    fn parse(word: &str) -> Result<Self, Error> {
        let all = [Self::Presigned, Self::Uploaded, Self::Processed, Self::RolledBack];
        let unreadable = || Error::Unreadable { table: "deploys", column: "status", value: word.to_owned() };
        all.into_iter().find(|status| status.as_str() == word).ok_or_else(unreadable)
    }
}

/// A deploy.
#[derive(Debug, Clone)]
pub struct Deploy {
    /// Its id.
    pub id: Uuid,
    /// The site it was published to, once it was.
    pub subdomain_id: Option<Uuid>,
    /// How far it is.
    pub status: Status,
    /// The row and digest of its zip, between upload and processing.
    pub zip: Option<(Uuid, [u8; 32])>,
    /// Bytes of its zip.
    pub size_bytes: i64,
    /// Until when somebody is at it.
    pub leased_until: Option<DateTime<Utc>>,
    /// Files done so far.
    pub files_done: i32,
    /// Files in all; none while they aren't counted.
    pub files_total: i32,
    /// Whether its files are still known.
    pub has_files: bool,
    /// The deploy that was served before it.
    pub previous_id: Option<Uuid>,
    /// When it was begun.
    pub created_at: DateTime<Utc>,
    /// When it was published.
    pub processed_at: Option<DateTime<Utc>>,
}

/// Stores a deploy whose zip is to come.
pub async fn insert_deploy(
    conn: &mut Conn,
    account_id: Uuid,
    id: Uuid,
    size_bytes: i64,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    query!(
        "insert into deploys (id, account_id, size_bytes, created_at) values ($1, $2, $3, $4)",
        id,
        account_id,
        size_bytes,
        now,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// How many deploys of the account wait for their zip, or with it to be processed.
pub async fn count_open(conn: &mut Conn, account_id: Uuid) -> Result<i64, Error> {
    let open = query_scalar!(
        r#"select count(*) as "open!" from deploys
           where account_id = $1 and status in ('presigned', 'uploaded')"#,
        account_id,
    )
    .fetch_one(conn)
    .await?;
    Ok(open)
}

/// A deploy of the account.
pub async fn find_deploy(conn: &mut Conn, account_id: Uuid, id: Uuid) -> Result<Option<Deploy>, Error> {
    let row = query!(
        r#"select d.id, d.subdomain_id, d.status, d.size_bytes, d.leased_until, d.files_done, d.files_total,
                  d.has_files, d.previous_id, d.created_at, d.processed_at, b.id as "blob_id?", b.sha256 as "sha256?"
           from deploys d left join blobs b on b.id = d.blob_id where d.account_id = $1 and d.id = $2"#,
        account_id,
        id,
    )
    .fetch_optional(conn)
    .await?;
    row.map(|row| {
        let zip = row.blob_id.zip(row.sha256);
        Ok(Deploy {
            id: row.id,
            subdomain_id: row.subdomain_id,
            status: Status::parse(&row.status)?,
            zip: zip.map(|(id, sha256)| blobs::digest(&sha256).map(|sha256| (id, sha256))).transpose()?,
            size_bytes: row.size_bytes,
            leased_until: row.leased_until,
            files_done: row.files_done,
            files_total: row.files_total,
            has_files: row.has_files,
            previous_id: row.previous_id,
            created_at: row.created_at,
            processed_at: row.processed_at,
        })
    })
    .transpose()
}

/// The zip of a deploy has come.
pub async fn update_uploaded(
    conn: &mut Conn,
    account_id: Uuid,
    id: Uuid,
    blob_id: Uuid,
) -> Result<(), Error> {
    query!(
        "update deploys set blob_id = $3, status = 'uploaded'
         where account_id = $1 and id = $2 and status = 'presigned'",
        account_id,
        id,
        blob_id,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Takes a deploy whose zip is here for processing, until then. `false` if somebody is at it, or was.
pub async fn lease_deploy(
    conn: &mut Conn,
    account_id: Uuid,
    id: Uuid,
    now: DateTime<Utc>,
    until: DateTime<Utc>,
) -> Result<bool, Error> {
    let leased = query_scalar!(
        "update deploys set leased_until = $4, files_done = 0, files_total = 0
         where account_id = $1 and id = $2 and status = 'uploaded'
           and (leased_until is null or leased_until <= $3) returning id",
        account_id,
        id,
        now,
        until,
    )
    .fetch_optional(conn)
    .await?;
    Ok(leased.is_some())
}

/// Whoever is at a deploy is still at it, and so far; without a time, they are no more.
pub async fn update_progress(
    conn: &mut Conn,
    account_id: Uuid,
    id: Uuid,
    until: Option<DateTime<Utc>>,
    (done, total): (i32, i32),
) -> Result<(), Error> {
    query!(
        "update deploys set leased_until = $3, files_done = $4, files_total = $5
         where account_id = $1 and id = $2 and status = 'uploaded'",
        account_id,
        id,
        until,
        done,
        total,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// A deploy of so many files is published on a subdomain, in the place of `previous_id`. Its zip is no longer needed: that is to be
/// released.
pub async fn finish_deploy(
    conn: &mut Conn,
    account_id: Uuid,
    id: Uuid,
    subdomain_id: Uuid,
    previous_id: Option<Uuid>,
    files: i32,
    now: DateTime<Utc>,
) -> Result<bool, Error> {
    let finished = query_scalar!(
        "update deploys set status = 'processed', subdomain_id = $3, previous_id = $4, processed_at = $5,
                            blob_id = null, leased_until = null, files_done = $6, files_total = $6
         where account_id = $1 and id = $2 and status = 'uploaded' returning id",
        account_id,
        id,
        subdomain_id,
        previous_id,
        now,
        files,
    )
    .fetch_optional(conn)
    .await?;
    Ok(finished.is_some())
}

/// A deploy was undone.
pub async fn update_rolled_back(conn: &mut Conn, account_id: Uuid, id: Uuid) -> Result<(), Error> {
    query!("update deploys set status = 'rolled_back' where account_id = $1 and id = $2", account_id, id)
        .execute(conn)
        .await?;
    Ok(())
}

/// Takes away up to `limit` deploys that were begun before `before` and never published; gives whose, and the
/// zips, which are to be released.
pub async fn delete_abandoned(
    conn: &mut Conn,
    before: DateTime<Utc>,
    now: DateTime<Utc>,
    limit: i64,
) -> Result<Vec<(Uuid, Option<Uuid>)>, Error> {
    let rows = query!(
        "delete from deploys where id in (
             select id from deploys where status in ('presigned', 'uploaded') and created_at < $1
                and (leased_until is null or leased_until <= $2)
             order by created_at limit $3 for update skip locked)
         returning account_id, blob_id",
        before,
        now,
        limit,
    )
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().map(|row| (row.account_id, row.blob_id)).collect())
}
