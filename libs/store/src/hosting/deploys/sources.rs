//! The announced files of deploys, which refer to the account's stored bytes so that these need no upload.
//!
//! An unprocessed deploy has a row for each announced file. A published one has rows only for the files that its site serves in
//! another form, so that the next deploy finds them too. These bytes don't count towards the plan, like the texts of pages.

use sqlx::{query, query_scalar};
use uuid::Uuid;

use crate::{Conn, Error, blobs};

/// An announced file to insert.
#[derive(Debug, Clone)]
pub struct NewSource {
    /// Path from the top of the zip.
    pub path: String,
    pub sha256: [u8; 32],
    pub size_bytes: i64,
    /// Its stored bytes; `None` if the zip must have them.
    pub blob_id: Option<Uuid>,
}

/// An announced file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Path from the top of the zip.
    pub path: String,
    pub sha256: [u8; 32],
    pub size_bytes: i64,
    /// Whether the account has stored its bytes.
    pub is_stored: bool,
}

/// Stored bytes that this transaction may refer to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownBlob {
    pub id: Uuid,
    pub sha256: [u8; 32],
    pub size_bytes: i64,
}

/// Locks those of the digests that a processed deploy or a preview of this account has a file of. They are not deleted before the
/// end of the transaction. An announcement makes no file known, or it could be renewed for ever without storage to charge. Other
/// files of the account, and all files of other accounts, are as unknown as bytes that were never stored. With `subdomains`, only
/// deploys of these sites count.
pub async fn lock_known(
    conn: &mut Conn,
    account_id: Uuid,
    digests: &[[u8; 32]],
    subdomains: Option<&[Uuid]>,
) -> Result<Vec<KnownBlob>, Error> {
    let digests: Vec<Vec<u8>> = digests.iter().map(|digest| digest.to_vec()).collect();
    let rows = query!(
        "select b.id, b.sha256, b.size_bytes from blobs b
         where b.account_id = $1 and b.sha256 = any($2)
           and (exists (select from deploy_files f join deploys d on d.id = f.deploy_id
                        where f.blob_id = b.id and ($3::uuid[] is null or d.subdomain_id = any($3)))
             or exists (select from deploy_sources s join deploys d on d.id = s.deploy_id
                        where s.blob_id = b.id and d.status in ('preview', 'processed')
                          and ($3::uuid[] is null or d.subdomain_id = any($3))))
         order by b.sha256 for key share of b",
        account_id,
        &digests,
        subdomains as _,
    )
    .fetch_all(conn)
    .await?;
    let known =
        |id, sha256: Vec<u8>, size_bytes| Ok(KnownBlob { id, sha256: blobs::digest(&sha256)?, size_bytes });
    rows.into_iter().map(|row| known(row.id, row.sha256, row.size_bytes)).collect()
}

/// Makes a deploy one of announced files. Without missing files it is ready to be processed.
pub async fn update_announced(
    conn: &mut Conn,
    account_id: Uuid,
    deploy_id: Uuid,
    is_complete: bool,
) -> Result<(), Error> {
    query!(
        "update deploys set has_manifest = true, status = case when $3 then 'uploaded' else status end
         where account_id = $1 and id = $2 and status = 'presigned'",
        account_id,
        deploy_id,
        is_complete,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Inserts announced files of a deploy.
pub async fn insert_sources(
    conn: &mut Conn,
    account_id: Uuid,
    deploy_id: Uuid,
    sources: &[NewSource],
) -> Result<(), Error> {
    let paths: Vec<&str> = sources.iter().map(|source| source.path.as_str()).collect();
    let digests: Vec<&[u8]> = sources.iter().map(|source| source.sha256.as_slice()).collect();
    let sizes: Vec<i64> = sources.iter().map(|source| source.size_bytes).collect();
    let blobs: Vec<Option<Uuid>> = sources.iter().map(|source| source.blob_id).collect();
    query!(
        "insert into deploy_sources (deploy_id, path, sha256, size_bytes, blob_id)
         select d.id, s.* from deploys d, unnest($3::text[], $4::bytea[], $5::bigint[], $6::uuid[]) s
         where d.account_id = $1 and d.id = $2",
        account_id,
        deploy_id,
        &paths as _,
        &digests as _,
        &sizes,
        &blobs as _,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Returns the announced files of a deploy, by path.
pub async fn list_sources(conn: &mut Conn, account_id: Uuid, deploy_id: Uuid) -> Result<Vec<Source>, Error> {
    let rows = query!(
        r#"select s.path, s.sha256, s.size_bytes, s.blob_id is not null as "is_stored!"
           from deploy_sources s join deploys d on d.id = s.deploy_id
           where d.account_id = $1 and d.id = $2 order by s.path"#,
        account_id,
        deploy_id,
    )
    .fetch_all(conn)
    .await?;
    let source = |path, sha256: Vec<u8>, size_bytes, is_stored| {
        Ok(Source { path, sha256: blobs::digest(&sha256)?, size_bytes, is_stored })
    };
    rows.into_iter().map(|row| source(row.path, row.sha256, row.size_bytes, row.is_stored)).collect()
}

/// Deletes the announced files of deploys. Returns the blobs to release.
pub async fn delete_sources(conn: &mut Conn, account_id: Uuid, deploys: &[Uuid]) -> Result<Vec<Uuid>, Error> {
    let blobs = query_scalar!(
        "delete from deploy_sources s using deploys d
         where d.id = s.deploy_id and d.account_id = $1 and d.id = any($2) returning s.blob_id",
        account_id,
        deploys,
    )
    .fetch_all(conn)
    .await?;
    Ok(blobs.into_iter().flatten().collect())
}
