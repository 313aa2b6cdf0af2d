//! The state of a deploy from its announcement to its rollback.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use domain::deploys::report::DeployStats;
use domain::static_sites::SiteRules;
use serde_json::Value;
use sqlx::types::Json;
use sqlx::{query, query_as, query_scalar};
use uuid::Uuid;

use crate::{Conn, Error, blobs};

/// The status of a deploy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Its zip is not uploaded yet.
    Presigned,
    /// Its zip is uploaded, or all its announced files are stored already.
    Uploaded,
    /// It is served at a host of its own and can be published.
    Preview,
    /// It was a preview and its files are deleted.
    Expired,
    /// It is or was published.
    Processed,
    /// It was rolled back.
    RolledBack,
}

impl Status {
    /// Returns the status as stored and as in the API.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Presigned => "presigned",
            Self::Uploaded => "uploaded",
            Self::Preview => "preview",
            Self::Expired => "expired",
            Self::Processed => "processed",
            Self::RolledBack => "rolled_back",
        }
    }

    fn parse(word: &str) -> Result<Self, Error> {
        let all = [
            Self::Presigned,
            Self::Uploaded,
            Self::Preview,
            Self::Expired,
            Self::Processed,
            Self::RolledBack,
        ];
        let unreadable = || Error::Unreadable { table: "deploys", column: "status", value: word.to_owned() };
        all.into_iter().find(|status| status.as_str() == word).ok_or_else(unreadable)
    }
}

/// A deploy.
#[derive(Debug, Clone)]
pub struct Deploy {
    pub id: Uuid,
    /// The site it was published to, or is a preview of.
    pub subdomain_id: Option<Uuid>,
    /// The name of that site's subdomain.
    pub subdomain: Option<String>,
    pub status: Status,
    /// Whether it is what its site serves.
    pub is_live: bool,
    /// Row and digest of its zip, between upload and processing.
    pub zip: Option<(Uuid, [u8; 32])>,
    /// Size of its zip; zero without one.
    pub size_bytes: i64,
    /// Whether its files were announced with their digests.
    pub has_manifest: bool,
    /// Until when a process is working on it.
    pub leased_until: Option<DateTime<Utc>>,
    pub files_done: i32,
    /// Zero until the files are counted.
    pub files_total: i32,
    /// Whether its files are still stored.
    pub has_files: bool,
    /// The deploy that it replaced.
    pub previous_id: Option<Uuid>,
    pub created_at: DateTime<Utc>,
    /// The display name of the caller who created it.
    pub created_by: Option<String>,
    /// The key that created it, which may be deleted by now; none if it was created in a session.
    pub created_by_key: Option<Uuid>,
    /// When it was published.
    pub processed_at: Option<DateTime<Utc>>,
    /// Its totals, once it is processed.
    pub stats: Option<DeployStats>,
    /// The token of a preview.
    pub preview_token: Option<String>,
    /// When a preview ends or ended.
    pub preview_expires_at: Option<DateTime<Utc>>,
    /// What it changes, in its creator's words.
    pub message: Option<String>,
}

/// A row of a deploy.
pub(super) struct DeployRow {
    pub(super) id: Uuid,
    pub(super) subdomain_id: Option<Uuid>,
    pub(super) subdomain: Option<String>,
    pub(super) status: String,
    pub(super) is_live: bool,
    pub(super) size_bytes: i64,
    pub(super) has_manifest: bool,
    pub(super) leased_until: Option<DateTime<Utc>>,
    pub(super) files_done: i32,
    pub(super) files_total: i32,
    pub(super) has_files: bool,
    pub(super) previous_id: Option<Uuid>,
    pub(super) created_at: DateTime<Utc>,
    pub(super) created_by: Option<String>,
    pub(super) created_by_key: Option<Uuid>,
    pub(super) processed_at: Option<DateTime<Utc>>,
    pub(super) stats: Option<Value>,
    pub(super) preview_token: Option<String>,
    pub(super) preview_expires_at: Option<DateTime<Utc>>,
    pub(super) message: Option<String>,
    pub(super) blob_id: Option<Uuid>,
    pub(super) sha256: Option<Vec<u8>>,
}

impl TryFrom<DeployRow> for Deploy {
    type Error = Error;

    fn try_from(row: DeployRow) -> Result<Self, Error> {
        let zip = row.blob_id.zip(row.sha256);
        Ok(Self {
            id: row.id,
            subdomain_id: row.subdomain_id,
            subdomain: row.subdomain,
            status: Status::parse(&row.status)?,
            is_live: row.is_live,
            zip: zip.map(|(id, sha256)| blobs::digest(&sha256).map(|sha256| (id, sha256))).transpose()?,
            size_bytes: row.size_bytes,
            has_manifest: row.has_manifest,
            leased_until: row.leased_until,
            files_done: row.files_done,
            files_total: row.files_total,
            has_files: row.has_files,
            previous_id: row.previous_id,
            created_at: row.created_at,
            created_by: row.created_by,
            created_by_key: row.created_by_key,
            processed_at: row.processed_at,
            stats: row.stats.and_then(|stats| serde_json::from_value(stats).ok()),
            preview_token: row.preview_token,
            preview_expires_at: row.preview_expires_at,
            message: row.message,
        })
    }
}

/// Inserts a deploy before its upload. Its creator has a display name and, unless it is a session, a key.
pub async fn insert_deploy(
    conn: &mut Conn,
    account_id: Uuid,
    id: Uuid,
    size_bytes: i64,
    (created_by, created_by_key): (&str, Option<Uuid>),
    now: DateTime<Utc>,
) -> Result<(), Error> {
    query!(
        "insert into deploys (id, account_id, size_bytes, created_by, created_by_key, created_at)
         values ($1, $2, $3, $4, $5, $6)",
        id,
        account_id,
        size_bytes,
        created_by,
        created_by_key,
        now,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Returns the number of deploys that wait for their upload or their processing.
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

/// Returns a deploy of the account.
pub async fn find_deploy(conn: &mut Conn, account_id: Uuid, id: Uuid) -> Result<Option<Deploy>, Error> {
    let row = query_as!(
        DeployRow,
        r#"select d.id, d.subdomain_id, s.name as "subdomain?", d.status, d.size_bytes, d.has_manifest, d.leased_until,
                  d.files_done, d.files_total, d.has_files, d.previous_id, d.created_at, d.created_by, d.created_by_key,
                  d.processed_at, d.stats, d.preview_token, d.preview_expires_at, d.message, b.id as "blob_id?", b.sha256 as "sha256?",
                  exists (select from served_deploys v where v.deploy_id = d.id) as "is_live!"
           from deploys d left join blobs b on b.id = d.blob_id left join subdomains s on s.id = d.subdomain_id
           where d.account_id = $1 and d.id = $2"#,
        account_id,
        id,
    )
    .fetch_optional(conn)
    .await?;
    row.map(Deploy::try_from).transpose()
}

/// Sets the uploaded zip of a deploy.
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

/// Leases an uploaded deploy for processing, or a preview for its publication, until `until`. Returns `false` if it is
/// leased, or no longer in this status.
pub async fn lease_deploy(
    conn: &mut Conn,
    account_id: Uuid,
    id: Uuid,
    status: Status,
    now: DateTime<Utc>,
    until: DateTime<Utc>,
) -> Result<bool, Error> {
    let leased = query_scalar!(
        "update deploys set leased_until = $4,
                            files_done = case status when 'uploaded' then 0 else files_done end,
                            files_total = case status when 'uploaded' then 0 else files_total end
         where account_id = $1 and id = $2 and status = $5
           and (leased_until is null or leased_until <= $3) returning id",
        account_id,
        id,
        now,
        until,
        status.as_str(),
    )
    .fetch_optional(conn)
    .await?;
    Ok(leased.is_some())
}

/// Updates progress and lease of a deploy that still has this status; without `until` the lease ends. The files of a preview
/// are all done.
pub async fn update_progress(
    conn: &mut Conn,
    account_id: Uuid,
    id: Uuid,
    status: Status,
    until: Option<DateTime<Utc>>,
    (done, total): (i32, i32),
) -> Result<(), Error> {
    query!(
        "update deploys set leased_until = $3,
                            files_done = case status when 'uploaded' then $4 else files_done end,
                            files_total = case status when 'uploaded' then $5 else files_total end
         where account_id = $1 and id = $2 and status = $6",
        account_id,
        id,
        until,
        done,
        total,
        status.as_str(),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// A deploy that is published.
#[derive(Debug)]
pub struct FinishedDeploy<'a> {
    pub id: Uuid,
    /// Its status before: uploaded, or a preview.
    pub status: Status,
    /// The site it is published to.
    pub subdomain_id: Uuid,
    /// The deploy that it replaces.
    pub previous_id: Option<Uuid>,
    /// Number of its files.
    pub files: i32,
    /// What the site answers besides its files.
    pub rules: &'a SiteRules,
}

/// Marks a deploy as published. The caller must release its zip. Returns `false` if it is no longer in the status before.
pub async fn finish_deploy(
    conn: &mut Conn,
    account_id: Uuid,
    deploy: &FinishedDeploy<'_>,
    now: DateTime<Utc>,
) -> Result<bool, Error> {
    let rules = (!deploy.rules.is_empty()).then_some(Json(deploy.rules));
    let finished = query_scalar!(
        "update deploys set status = 'processed', subdomain_id = $3, previous_id = $4, processed_at = $5,
                            blob_id = null, leased_until = null, files_done = $6, files_total = $6, rules = $7,
                            preview_token = null, preview_expires_at = null, preview_report = null
         where account_id = $1 and id = $2 and status = $8 returning id",
        account_id,
        deploy.id,
        deploy.subdomain_id,
        deploy.previous_id,
        now,
        deploy.files,
        rules as _,
        deploy.status.as_str(),
    )
    .fetch_optional(conn)
    .await?;
    Ok(finished.is_some())
}

/// Sets the totals of a deploy.
pub async fn update_stats(
    conn: &mut Conn,
    account_id: Uuid,
    id: Uuid,
    stats: &DeployStats,
) -> Result<(), Error> {
    query!(
        "update deploys set stats = $3 where account_id = $1 and id = $2",
        account_id,
        id,
        Json(stats) as _,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Marks a deploy as rolled back.
pub async fn update_rolled_back(conn: &mut Conn, account_id: Uuid, id: Uuid) -> Result<(), Error> {
    query!("update deploys set status = 'rolled_back' where account_id = $1 and id = $2", account_id, id)
        .execute(conn)
        .await?;
    Ok(())
}

/// A deploy that was deleted before it was published.
#[derive(Debug)]
pub struct AbandonedDeploy {
    pub account_id: Uuid,
    /// Its zip and the files it referred to, to be released.
    pub blobs: Vec<Uuid>,
}

/// Deletes and returns up to `limit` deploys that were begun before `before` and never published.
pub async fn delete_abandoned(
    conn: &mut Conn,
    before: DateTime<Utc>,
    now: DateTime<Utc>,
    limit: i64,
) -> Result<Vec<AbandonedDeploy>, Error> {
    let ids = query_scalar!(
        "select id from deploys where status in ('presigned', 'uploaded') and created_at < $1
            and (leased_until is null or leased_until <= $2)
         order by created_at limit $3 for update skip locked",
        before,
        now,
        limit,
    )
    .fetch_all(&mut *conn)
    .await?;
    let sources =
        query!("delete from deploy_sources where deploy_id = any($1) returning deploy_id, blob_id", &ids,)
            .fetch_all(&mut *conn)
            .await?;
    let rows = query!("delete from deploys where id = any($1) returning id, account_id, blob_id", &ids)
        .fetch_all(conn)
        .await?;
    let mut blobs: BTreeMap<Uuid, Vec<Uuid>> = BTreeMap::new();
    for source in sources {
        blobs.entry(source.deploy_id).or_default().extend(source.blob_id);
    }
    let abandoned = rows.into_iter().map(|row| {
        let mut blobs = blobs.remove(&row.id).unwrap_or_default();
        blobs.extend(row.blob_id);
        AbandonedDeploy { account_id: row.account_id, blobs }
    });
    Ok(abandoned.collect())
}
