//! What a site has at an address: pages and files of its served deploy, found by one query.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::query;
use uuid::Uuid;

use crate::pages::Document;
use crate::served_files::ServedFile;
use crate::sites::TrackerTag;
use crate::{Conn, Error, blobs};

/// The pages and files to look up.
#[derive(Debug, Clone, Copy)]
pub struct Lookup<'a> {
    /// The subdomain with the pages and the tracker; a preview has none.
    pub subdomain_id: Option<Uuid>,
    /// The deploy with the site's files.
    pub deploy_id: Option<Uuid>,
    /// Paths of files, and of pages that show a file.
    pub paths: &'a [String],
    /// Slugs of pages. Their documents are found too.
    pub slugs: &'a [String],
    /// Paths of pages whose documents are needed.
    pub documents: &'a [String],
    /// Kept files of earlier deploys are found until they end.
    pub now: DateTime<Utc>,
}

/// What was found.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// Published pages.
    pub pages: Vec<FoundPage>,
    pub files: Vec<FoundFile>,
    /// The tracker of the site's pages, if their views are counted. Unknown if nothing was found.
    pub tag: Option<TrackerTag>,
}

/// A published page.
#[derive(Debug, Clone)]
pub struct FoundPage {
    pub slug: String,
    /// Path of the file that it shows.
    pub path: Option<String>,
    /// `None` unless it was asked for.
    pub document: Option<Document>,
}

/// A file of the site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundFile {
    /// Path on the site, without a leading slash.
    pub path: String,
    pub file: ServedFile,
    /// Whether its name has a hash of its content.
    pub is_content_hashed: bool,
}

/// Returns the published pages and the files of a site that a lookup names. Takes no account, because visitors have
/// none.
pub async fn find_at_address(conn: &mut Conn, lookup: &Lookup<'_>) -> Result<Found, Error> {
    let rows = query!(
        r#"select p.id as "page_id?", p.slug as "slug?", p.path as "path?",
                  case when w.wanted then p.html end as "html?", case when w.wanted then p.css end as "css?",
                  case when w.wanted then p.entry_template end as "entry_template?",
                  case when w.wanted and p.entry_template is not null then array(
                    select e.data from page_entries e where e.page_id = p.id order by e.created_at desc, e.id desc)
                  end as "entries?: Vec<Value>",
                  null::uuid as "account_id?", null::bytea as "sha256?", null::bigint as "size_bytes?",
                  null::text as "content_type?", null::boolean as "content_hashed?", a.site_token as "site_token?", a.honour_dnt as "honour_dnt?",
                  a.hash_routing as "hash_routing?"
           from pages p
           cross join lateral (select p.slug = any($4) or p.path = any($5) is true as wanted) w
           left join analytics_sites a on a.subdomain_id = p.subdomain_id
           where p.subdomain_id = $1 and p.is_published and (p.path = any($3) or p.slug = any($4))
           union all
           select null, null, f.path, null, null, null, null,
                  b.account_id, b.sha256, f.size_bytes, f.content_type, f.content_hashed, a.site_token, a.honour_dnt,
                  a.hash_routing
           from deploy_files f join blobs b on b.id = f.blob_id
           left join analytics_sites a on a.subdomain_id = $1
           where f.deploy_id = $2 and f.path = any($3) and (f.expires_at is null or f.expires_at > $6)"#,
        lookup.subdomain_id,
        lookup.deploy_id,
        lookup.paths,
        lookup.slugs,
        lookup.documents,
        lookup.now,
    )
    .fetch_all(conn)
    .await?;
    let mut found = Found::default();
    for row in rows {
        if let (None, Some(site_token), Some(honour_dnt), Some(hash_routing)) =
            (&found.tag, row.site_token, row.honour_dnt, row.hash_routing)
        {
            found.tag = Some(TrackerTag { site_token, honour_dnt, hash_routing });
        }
        if let (Some(id), Some(slug)) = (row.page_id, row.slug) {
            let document = row.html.map(|html| Document {
                id,
                html,
                css: row.css,
                entry_template: row.entry_template,
                entries: row.entries.unwrap_or_default(),
            });
            found.pages.push(FoundPage { slug, path: row.path, document });
        } else if let (Some(path), Some(account_id), Some(sha256), Some(size_bytes), Some(content_type)) =
            (row.path, row.account_id, row.sha256, row.size_bytes, row.content_type)
        {
            let filename = path.rsplit('/').next().unwrap_or_default().to_owned();
            let sha256 = blobs::digest(&sha256)?;
            let file =
                ServedFile { account_id, sha256, size_bytes, content_type, filename, is_suspended: false };
            let is_content_hashed = row.content_hashed == Some(true);
            found.files.push(FoundFile { path, file, is_content_hashed });
        }
    }
    Ok(found)
}
