//! Files of deploys other than pages, and the deploy that each site serves.

use chrono::{DateTime, Utc};
use domain::static_sites::hashed_names::content_hashed;
use sqlx::{query, query_as, query_scalar};
use uuid::Uuid;

use crate::served_files::ServedFile;
use crate::{Conn, Error, blobs};

/// A file of a deploy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeployFile {
    /// Path on the site, without a leading slash.
    pub path: String,
    pub blob_id: Uuid,
    pub size_bytes: i64,
    pub content_type: String,
    /// Whether it also has a URL by its digest.
    pub by_content: bool,
    /// Why an HTML file is served without a page; `None` for other files.
    pub reason: Option<String>,
    /// The title that an HTML file of a preview has as a page.
    pub title: Option<String>,
}

/// The deploy that a site serves its files from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServedDeploy {
    pub deploy_id: Uuid,
    /// Total size of its files, with those that it kept from earlier deploys.
    pub size_bytes: i64,
    /// Whether its files were announced with their digests.
    pub has_manifest: bool,
}

/// Locks the choice of the deploy that a site serves until the end of the transaction. Returns that deploy, if any.
pub async fn lock_served_deploy(
    conn: &mut Conn,
    account_id: Uuid,
    subdomain_id: Uuid,
) -> Result<Option<ServedDeploy>, Error> {
    query!(
        "select id from subdomains where account_id = $1 and id = $2 for no key update",
        account_id,
        subdomain_id,
    )
    .fetch_optional(&mut *conn)
    .await?;
    let served = query_as!(
        ServedDeploy,
        r#"select s.deploy_id, coalesce(sum(f.size_bytes), 0)::bigint as "size_bytes!", d.has_manifest
           from served_deploys s join deploys d on d.id = s.deploy_id
           left join deploy_files f on f.deploy_id = s.deploy_id
           where d.account_id = $1 and s.subdomain_id = $2 group by s.deploy_id, d.has_manifest"#,
        account_id,
        subdomain_id,
    )
    .fetch_optional(conn)
    .await?;
    Ok(served)
}

/// Sets the deploy that a site serves its files from, or none.
pub async fn update_served_deploy(
    conn: &mut Conn,
    account_id: Uuid,
    subdomain_id: Uuid,
    deploy_id: Option<Uuid>,
) -> Result<(), Error> {
    query!(
        "delete from served_deploys s using subdomains d
         where s.subdomain_id = $2 and d.id = s.subdomain_id and d.account_id = $1",
        account_id,
        subdomain_id,
    )
    .execute(&mut *conn)
    .await?;
    query!(
        "insert into served_deploys (subdomain_id, deploy_id)
         select $2, id from deploys where account_id = $1 and id = $3",
        account_id,
        subdomain_id,
        deploy_id,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Inserts the files of a deploy. Their names together decide which of them have a hash of their content.
pub async fn insert_files(
    conn: &mut Conn,
    account_id: Uuid,
    deploy_id: Uuid,
    files: &[DeployFile],
) -> Result<(), Error> {
    let paths: Vec<String> = files.iter().map(|file| file.path.clone()).collect();
    let blobs: Vec<Uuid> = files.iter().map(|file| file.blob_id).collect();
    let sizes: Vec<i64> = files.iter().map(|file| file.size_bytes).collect();
    let kinds: Vec<String> = files.iter().map(|file| file.content_type.clone()).collect();
    let by_content: Vec<bool> = files.iter().map(|file| file.by_content).collect();
    let reasons: Vec<Option<&str>> = files.iter().map(|file| file.reason.as_deref()).collect();
    let titles: Vec<Option<&str>> = files.iter().map(|file| file.title.as_deref()).collect();
    let hashed = content_hashed(files.iter().map(|file| file.path.as_str()));
    let hashed: Vec<bool> = files.iter().map(|file| hashed.contains(file.path.as_str())).collect();
    query!(
        "insert into deploy_files (deploy_id, path, blob_id, size_bytes, content_type, by_content, reason, title,
                                   content_hashed)
         select d.id, f.* from deploys d,
             unnest($3::text[], $4::uuid[], $5::bigint[], $6::text[], $7::boolean[], $8::text[], $9::text[],
                    $10::boolean[]) f
         where d.account_id = $1 and d.id = $2",
        account_id,
        deploy_id,
        &paths,
        &blobs,
        &sizes,
        &kinds,
        &by_content,
        &reasons as _,
        &titles as _,
        &hashed,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Returns the files of a deploy, without those that it kept from earlier ones.
pub async fn list_files(
    conn: &mut Conn,
    account_id: Uuid,
    deploy_id: Uuid,
) -> Result<Vec<DeployFile>, Error> {
    let files = query_as!(
        DeployFile,
        "select f.path, f.blob_id, f.size_bytes, f.content_type, f.by_content, f.reason, f.title
         from deploy_files f join deploys d on d.id = f.deploy_id
         where d.account_id = $1 and d.id = $2 and f.expires_at is null order by f.path",
        account_id,
        deploy_id,
    )
    .fetch_all(conn)
    .await?;
    Ok(files)
}

/// Deletes the files of a site's deploys except the `kept` newest and the one being served. Returns the blobs to
/// release.
pub async fn delete_old_files(
    conn: &mut Conn,
    account_id: Uuid,
    subdomain_id: Uuid,
    kept: i64,
) -> Result<Vec<Uuid>, Error> {
    let old = query_scalar!(
        "update deploys set has_files = false where id in (
             select id from deploys
             where account_id = $1 and subdomain_id = $2 and status in ('processed', 'rolled_back')
             order by processed_at desc, id desc offset $3)
           and has_files and id not in (select deploy_id from served_deploys) returning id",
        account_id,
        subdomain_id,
        kept,
    )
    .fetch_all(&mut *conn)
    .await?;
    let blobs = query_scalar!("delete from deploy_files where deploy_id = any($1) returning blob_id", &old)
        .fetch_all(conn)
        .await?;
    Ok(blobs)
}

/// Returns the file at a path of a site. Takes no account, because visitors have none.
pub async fn find_file(
    conn: &mut Conn,
    subdomain_id: Uuid,
    path: &str,
    now: DateTime<Utc>,
) -> Result<Option<ServedFile>, Error> {
    let row = query!(
        r#"select d.account_id, b.sha256, f.size_bytes, f.content_type
           from served_deploys s join deploys d on d.id = s.deploy_id
           join deploy_files f on f.deploy_id = s.deploy_id join blobs b on b.id = f.blob_id
           where s.subdomain_id = $1 and f.path = $2 and (f.expires_at is null or f.expires_at > $3)"#,
        subdomain_id,
        path,
        now,
    )
    .fetch_optional(conn)
    .await?;
    row.map(|row| {
        Ok(ServedFile {
            account_id: row.account_id,
            sha256: blobs::digest(&row.sha256)?,
            size_bytes: row.size_bytes,
            content_type: row.content_type,
            filename: path.rsplit('/').next().unwrap_or_default().to_owned(),
            is_suspended: false,
        })
    })
    .transpose()
}
