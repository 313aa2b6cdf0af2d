//! Previews: deploys that are served at hosts of their own until they are published, expire or are deleted.

use chrono::{DateTime, Utc};
use domain::deploys::report::{DeployReport, DeployStats};
use domain::previews::label;
use domain::static_sites::SiteRules;
use sqlx::types::Json;
use sqlx::{query, query_as, query_scalar};
use uuid::Uuid;

use super::kept_files::Filter;
use super::sources;
use crate::subdomains::StoredSite;
use crate::{Conn, Error, blobs, usage};

/// A deploy that becomes a preview.
#[derive(Debug)]
pub struct NewPreview<'a> {
    pub deploy_id: Uuid,
    /// The site that it is a preview of.
    pub subdomain_id: Uuid,
    pub token: &'a str,
    pub expires_at: DateTime<Utc>,
    /// Number of its files.
    pub files: i32,
    /// What it answers besides its files.
    pub rules: &'a SiteRules,
    pub stats: &'a DeployStats,
    pub report: &'a DeployReport,
}

/// A preview as it was stored.
#[derive(Debug)]
pub struct StoredPreview {
    pub files: Vec<PreviewFile>,
    pub rules: SiteRules,
    pub report: DeployReport,
}

/// A file of a preview.
#[derive(Debug, Clone)]
pub struct PreviewFile {
    /// Path on the site, without a leading slash.
    pub path: String,
    pub sha256: [u8; 32],
    pub size_bytes: i64,
    pub content_type: String,
    /// Whether it also has a URL by its digest.
    pub by_content: bool,
    /// Why an HTML file has no page; `None` for other files.
    pub reason: Option<String>,
    /// The title that an HTML file has as a page.
    pub title: Option<String>,
}

/// The number of previews of an account. Under its usage lock the number is exact.
pub async fn count_previews(conn: &mut Conn, account_id: Uuid) -> Result<i64, Error> {
    let count = query_scalar!(
        r#"select count(*) as "count!" from deploys where account_id = $1 and status = 'preview'"#,
        account_id,
    )
    .fetch_one(conn)
    .await?;
    Ok(count)
}

/// Turns an uploaded deploy into a preview. The caller must release its zip. Returns `false` if it was not in the uploaded
/// state.
pub async fn finish_preview(
    conn: &mut Conn,
    account_id: Uuid,
    preview: &NewPreview<'_>,
) -> Result<bool, Error> {
    let rules = (!preview.rules.is_empty()).then_some(Json(preview.rules));
    let finished = query_scalar!(
        "update deploys set status = 'preview', subdomain_id = $3, preview_token = $4, preview_expires_at = $5,
                            blob_id = null, leased_until = null, files_done = $6, files_total = $6, rules = $7,
                            stats = $8, preview_report = $9
         where account_id = $1 and id = $2 and status = 'uploaded' returning id",
        account_id,
        preview.deploy_id,
        preview.subdomain_id,
        preview.token,
        preview.expires_at,
        preview.files,
        rules as _,
        Json(preview.stats) as _,
        Json(preview.report) as _,
    )
    .fetch_optional(conn)
    .await?;
    Ok(finished.is_some())
}

/// Returns the files, rules and report of a preview; `None` if it is none any more.
pub async fn find_preview(
    conn: &mut Conn,
    account_id: Uuid,
    deploy_id: Uuid,
) -> Result<Option<StoredPreview>, Error> {
    let row = query!(
        r#"select rules as "rules: Json<SiteRules>", preview_report as "report: Json<DeployReport>" from deploys
           where account_id = $1 and id = $2 and status = 'preview'"#,
        account_id,
        deploy_id,
    )
    .fetch_optional(&mut *conn)
    .await?;
    let Some(row) = row else { return Ok(None) };
    let files = query!(
        "select f.path, b.sha256, f.size_bytes, f.content_type, f.by_content, f.reason, f.title
         from deploy_files f join blobs b on b.id = f.blob_id where b.account_id = $1 and f.deploy_id = $2
         order by f.path",
        account_id,
        deploy_id,
    )
    .fetch_all(conn)
    .await?;
    let files = files.into_iter().map(|file| {
        Ok(PreviewFile {
            path: file.path,
            sha256: blobs::digest(&file.sha256)?,
            size_bytes: file.size_bytes,
            content_type: file.content_type,
            by_content: file.by_content,
            reason: file.reason,
            title: file.title,
        })
    });
    Ok(Some(StoredPreview {
        files: files.collect::<Result<_, Error>>()?,
        rules: row.rules.map(|rules| rules.0).unwrap_or_default(),
        report: row.report.map(|report| report.0).unwrap_or_default(),
    }))
}

/// Removes the files of a preview that is being published. Returns their blobs to release, and their total size, which is
/// still charged.
pub async fn take_files(
    conn: &mut Conn,
    account_id: Uuid,
    deploy_id: Uuid,
) -> Result<(Vec<Uuid>, i64), Error> {
    let rows = query!(
        "delete from deploy_files f using deploys d
         where d.id = f.deploy_id and d.account_id = $1 and d.id = $2 returning f.blob_id, f.size_bytes",
        account_id,
        deploy_id,
    )
    .fetch_all(conn)
    .await?;
    let bytes = rows.iter().map(|row| row.size_bytes).sum();
    Ok((rows.into_iter().map(|row| row.blob_id).collect(), bytes))
}

/// Returns up to `limit` previews that have expired, with their accounts. Those that are being published are not listed.
pub async fn list_expired(
    conn: &mut Conn,
    now: DateTime<Utc>,
    limit: i64,
) -> Result<Vec<(Uuid, Uuid)>, Error> {
    let rows = query!(
        "select account_id, id from deploys
         where status = 'preview' and preview_expires_at <= $1 and (leased_until is null or leased_until <= $1)
         order by preview_expires_at limit $2",
        now,
        limit,
    )
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().map(|row| (row.account_id, row.id)).collect())
}

/// Ends previews: deletes their files, and releases their blobs and bytes. The caller holds the usage lock. The filter's time
/// leaves out previews that are being published. Returns the labels of their hosts, which the caller must invalidate.
pub async fn end(
    conn: &mut Conn,
    account_id: Uuid,
    filter: Filter,
    now: DateTime<Utc>,
) -> Result<Vec<String>, Error> {
    let ended = query!(
        r#"with ended as (
             select d.id, d.preview_token, s.name from deploys d join subdomains s on s.id = d.subdomain_id
             where d.account_id = $1 and d.status = 'preview' and ($2::uuid is null or d.id = $2)
               and ($3::timestamptz is null
                    or d.preview_expires_at <= $3 and (d.leased_until is null or d.leased_until <= $3))
             for update of d)
           update deploys d set status = 'expired', has_files = false, leased_until = null, rules = null,
                                preview_token = null, preview_report = null,
                                preview_expires_at = least(d.preview_expires_at, $4)
           from ended e where d.id = e.id returning d.id, e.preview_token as "token!", e.name"#,
        account_id,
        filter.deploy_id,
        filter.expired_at,
        now,
    )
    .fetch_all(&mut *conn)
    .await?;
    let mut labels = Vec::with_capacity(ended.len());
    for preview in ended {
        release_files(conn, account_id, preview.id, now).await?;
        labels.push(label(&preview.token, &preview.name));
    }
    Ok(labels)
}

/// Deletes a deploy that was never published, with its upload and its files, and releases their blobs and bytes. The caller
/// holds the usage lock. Returns `false`, with nothing changed, if it was published or a process works on it.
pub async fn delete_unpublished(
    conn: &mut Conn,
    account_id: Uuid,
    deploy_id: Uuid,
    now: DateTime<Utc>,
) -> Result<bool, Error> {
    // An upload that is being finished locks this row before that of the deploy.
    query!("select from uploads where account_id = $1 and id = $2 for update", account_id, deploy_id)
        .fetch_optional(&mut *conn)
        .await?;
    let zip = query_scalar!(
        "select blob_id from deploys
         where account_id = $1 and id = $2 and status in ('presigned', 'uploaded', 'preview', 'expired')
           and (leased_until is null or leased_until <= $3) for update",
        account_id,
        deploy_id,
        now,
    )
    .fetch_optional(&mut *conn)
    .await?;
    let Some(zip) = zip else { return Ok(false) };
    release_files(conn, account_id, deploy_id, now).await?;
    crate::uploads::delete_upload(conn, account_id, deploy_id).await?;
    query!("delete from deploys where account_id = $1 and id = $2", account_id, deploy_id)
        .execute(&mut *conn)
        .await?;
    blobs::release_blobs(conn, account_id, zip.as_slice(), now).await?;
    Ok(true)
}

async fn release_files(
    conn: &mut Conn,
    account_id: Uuid,
    deploy_id: Uuid,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    let (mut unneeded, bytes) = take_files(conn, account_id, deploy_id).await?;
    unneeded.extend(sources::delete_sources(conn, account_id, &[deploy_id]).await?);
    blobs::release_blobs(conn, account_id, &unneeded, now).await?;
    usage::release_bytes(conn, account_id, bytes).await
}

/// Returns the preview of a subdomain with this token. Takes no account: the token is the visitor's permission.
pub async fn find_site(
    conn: &mut Conn,
    token: &str,
    subdomain: &str,
    now: DateTime<Utc>,
) -> Result<Option<StoredSite>, Error> {
    let site = query_as!(
        StoredSite,
        r#"select s.id as subdomain_id, false as "claimed!", true as "is_preview!", a.suspended_at is not null as "suspended!",
                  null::text as moved_to, null::text as hsts, d.id as "deploy_id?", d.rules::text as rules
           from deploys d join subdomains s on s.id = d.subdomain_id join accounts a on a.id = d.account_id
           where d.preview_token = $1 and s.name = $2 and d.status = 'preview' and d.preview_expires_at > $3"#,
        token,
        subdomain,
        now,
    )
    .fetch_optional(conn)
    .await?;
    Ok(site)
}
