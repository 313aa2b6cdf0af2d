//! Files of replaced deploys that stay reachable until they expire. Only the served deploy of a site has any: when another
//! one is served, they move with it or end. So the storage that they take is counted once.

use chrono::{DateTime, Utc};
use domain::deploys::kept_files::ReplacedFile;
use sqlx::{query, query_as, query_scalar};
use uuid::Uuid;

use crate::{Conn, Error};

/// The kept files to delete, or the previews to end.
#[derive(Debug, Clone, Copy, Default)]
pub struct Filter {
    /// Of this deploy only.
    pub deploy_id: Option<Uuid>,
    /// Only those that expired by then.
    pub expired_at: Option<DateTime<Utc>>,
}

/// The kept files that were deleted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeletedFiles {
    /// Blobs to release.
    pub blobs: Vec<Uuid>,
    /// Bytes to release, of deploys that are served.
    pub bytes: i64,
    /// The sites that served them.
    pub subdomains: Vec<Uuid>,
}

/// Returns all files of a deploy, with those that it kept.
pub async fn list_replaced(
    conn: &mut Conn,
    account_id: Uuid,
    deploy_id: Uuid,
) -> Result<Vec<ReplacedFile>, Error> {
    let files = query_as!(
        ReplacedFile,
        "select f.path, f.size_bytes, f.expires_at from deploy_files f join deploys d on d.id = f.deploy_id
         where d.account_id = $1 and d.id = $2 order by f.path",
        account_id,
        deploy_id,
    )
    .fetch_all(conn)
    .await?;
    Ok(files)
}

/// Copies these files of one deploy of the account to another one, each until its end.
pub async fn insert_kept(
    conn: &mut Conn,
    account_id: Uuid,
    (from, to): (Uuid, Uuid),
    files: &[(String, DateTime<Utc>)],
) -> Result<(), Error> {
    let (paths, ends): (Vec<String>, Vec<DateTime<Utc>>) = files.iter().cloned().unzip();
    query!(
        "insert into deploy_files (deploy_id, path, blob_id, size_bytes, content_type, by_content, expires_at)
         select t.id, f.path, f.blob_id, f.size_bytes, f.content_type, f.by_content, k.expires_at
         from unnest($4::text[], $5::timestamptz[]) as k (path, expires_at)
         join deploy_files f on f.deploy_id = $2 and f.path = k.path
         join deploys d on d.id = f.deploy_id and d.account_id = $1
         join deploys t on t.id = $3 and t.account_id = $1",
        account_id,
        from,
        to,
        &paths,
        &ends,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Deletes kept files of an account. The caller holds the usage lock, and releases the blobs and the bytes.
pub async fn delete_kept(conn: &mut Conn, account_id: Uuid, filter: Filter) -> Result<DeletedFiles, Error> {
    let rows = query!(
        r#"with deleted as (
             delete from deploy_files f using deploys d
             where d.id = f.deploy_id and d.account_id = $1 and f.expires_at is not null
               and ($2::uuid is null or f.deploy_id = $2) and ($3::timestamptz is null or f.expires_at <= $3)
             returning f.deploy_id, f.blob_id, f.size_bytes)
           select d.blob_id, d.size_bytes, s.subdomain_id as "subdomain_id?"
           from deleted d left join served_deploys s on s.deploy_id = d.deploy_id"#,
        account_id,
        filter.deploy_id,
        filter.expired_at,
    )
    .fetch_all(conn)
    .await?;
    let mut deleted = DeletedFiles::default();
    for row in rows {
        deleted.blobs.push(row.blob_id);
        if let Some(subdomain_id) = row.subdomain_id {
            deleted.bytes += row.size_bytes;
            deleted.subdomains.push(subdomain_id);
        }
    }
    deleted.subdomains.sort_unstable();
    deleted.subdomains.dedup();
    Ok(deleted)
}

/// Returns up to `limit` accounts with expired files. Takes no account, because maintenance covers all.
pub async fn list_accounts_with_expired(
    conn: &mut Conn,
    now: DateTime<Utc>,
    limit: i64,
) -> Result<Vec<Uuid>, Error> {
    let accounts = query_scalar!(
        "select distinct d.account_id from deploy_files f join deploys d on d.id = f.deploy_id
         where f.expires_at <= $1 order by d.account_id limit $2",
        now,
        limit,
    )
    .fetch_all(conn)
    .await?;
    Ok(accounts)
}
