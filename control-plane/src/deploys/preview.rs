//! Previews: a built site is stored and served at a host of its own, without a page and beside the live site. It is
//! published later from its stored files, with the pages that fit the site by then.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use blobs::Name;
use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use contract::Change;
use domain::deploys::report::{DeployReport, DeployStats};
use domain::media;
use domain::pages::MAX_HTML_BYTES;
use domain::previews;
use domain::scopes::Resource;
use domain::static_sites::page_slugs::{ExistingPages, HtmlFile, PagePlan, PlannedPage, is_html, plan_pages};
use domain::static_sites::reasons::Reason;
use futures::{StreamExt, TryStreamExt};
use store::Conn;
use store::blobs::NewBlob;
use store::deploys::files::DeployFile;
use store::deploys::previews::{NewPreview, PreviewFile, StoredPreview};
use store::subdomains::Subdomain;
use store::usage;
use uuid::Uuid;
use web::{Code, Problem};

use super::build::{BuiltSite, release};
use super::originals::replace_sources;
use super::publish::{charge, deploy_file, reference_blobs};
use super::site_state::SiteState;
use super::stored_files::{BuiltFile, MAX_CONCURRENT, failed_on_disk};
use super::unpack::{BuiltPage, Span, Spool, page_title};
use crate::App;
use crate::call::Call;

/// Documents that are downloaded before they are written to disk.
const BATCH_SIZE: usize = 64;

/// A preview that is served now.
#[derive(Debug)]
pub(crate) struct Preview {
    /// The label of its host.
    pub(crate) label: String,
    pub(crate) expires_at: DateTime<Utc>,
    pub(crate) stats: DeployStats,
}

/// Checks that the account may have one more preview. Exact under its usage lock.
pub(crate) async fn check_room<S>(app: &App, call: &Call<S>, conn: &mut Conn) -> Result<(), Problem> {
    let max = app.deploys.max_previews;
    if store::deploys::previews::count_previews(conn, call.account_id).await? < max {
        return Ok(());
    }
    let detail = format!("this account has {max} previews, which is the limit; nothing was changed");
    Err(Problem::new(Code::Conflict, detail).hint(
        "publish one with POST /api/deploy/{id}/publish, or delete one with DELETE /api/deploy/{id}; \
         GET /api/deploy lists them",
    ))
}

/// Stores a built site as a preview. After an error there is none, and the stored files are released.
pub(crate) async fn preview<S>(
    app: &App,
    call: &Call<S>,
    deploy_id: Uuid,
    zip_id: Option<Uuid>,
    subdomain: &Subdomain,
    site: &BuiltSite,
) -> Result<Preview, Problem> {
    let stored = preview_in_transaction(app, call, deploy_id, zip_id, subdomain, site).await;
    if stored.is_err() {
        release(app, call.account_id, site).await;
    }
    stored
}

async fn preview_in_transaction<S>(
    app: &App,
    call: &Call<S>,
    deploy_id: Uuid,
    zip_id: Option<Uuid>,
    subdomain: &Subdomain,
    site: &BuiltSite,
) -> Result<Preview, Problem> {
    let (account_id, now) = (call.account_id, app.clock.now());
    let ttl = TimeDelta::from_std(app.deploys.preview_ttl).unwrap_or(TimeDelta::MAX);
    let expires_at = now.checked_add_signed(ttl).unwrap_or(DateTime::<Utc>::MAX_UTC);
    let (token, stats) = (previews::token(app.rng.bytes()), site.stats());
    let report = DeployReport {
        listed: site.listed.clone(),
        notes: site.notes.clone(),
        errors: site.errors.clone(),
        missing: site.missing.iter().cloned().collect(),
    };
    let new = NewPreview {
        deploy_id,
        subdomain_id: subdomain.id,
        token: &token,
        expires_at,
        files: i32::try_from(site.files.len()).unwrap_or(i32::MAX),
        rules: &site.rules,
        stats: &stats,
        report: &report,
    };
    let mut tx = store::begin(&app.db).await?;
    usage::lock(&mut tx, account_id).await?;
    check_room(app, call, &mut tx).await?;
    if !store::deploys::previews::finish_preview(&mut tx, account_id, &new).await? {
        return Err(Problem::new(Code::Conflict, "another process has published or abandoned this deploy"));
    }
    let blobs = reference_blobs(&mut tx, account_id, site).await?;
    let files: Vec<DeployFile> = site.files.iter().filter_map(|file| deploy_file(file, &blobs)).collect();
    charge(call, &mut tx, 0, &files).await?;
    store::deploys::files::insert_files(&mut tx, account_id, deploy_id, &files).await?;
    let mut unneeded: Vec<Uuid> = zip_id.into_iter().collect();
    if site.has_manifest {
        let replaced = [deploy_id];
        let sources = replace_sources(&mut tx, account_id, deploy_id, &replaced, site, &files, &blobs);
        unneeded.extend(sources.await?);
    }
    store::blobs::release_blobs(&mut tx, account_id, &unneeded, now).await?;
    let label = previews::label(&token, &subdomain.name);
    // Images and fonts have URLs by content, which edges may have cached as missing. The live site did not change.
    call.set_changed(Resource::Subdomains, subdomain.id, &subdomain.name);
    call.commit(app, tx, vec![Change::Host { host: label.clone() }]).await?;
    Ok(Preview { label, expires_at, stats })
}

/// Builds the site of a preview from its stored files. Which HTML becomes pages is planned again: the site and the room of
/// the account may have changed.
pub(crate) async fn build_stored<S>(
    app: &App,
    call: &Call<S>,
    deploy_id: Uuid,
    subdomain_id: Uuid,
) -> Result<BuiltSite, Problem> {
    let mut tx = store::begin(&app.db).await?;
    let site = SiteState::find(&mut tx, call, subdomain_id).await?;
    let stored = store::deploys::previews::find_preview(&mut tx, call.account_id, deploy_id).await?;
    drop(tx);
    let stored = stored.ok_or_else(|| {
        Problem::new(Code::Conflict, "another process has published or deleted this preview meanwhile")
    })?;
    let plan = plan(&stored, &site);
    let StoredPreview { files, rules, report } = stored;
    let report = report.with_pages(&plan);
    let mut files: BTreeMap<String, PreviewFile> =
        files.into_iter().map(|file| (file.path.clone(), file)).collect();
    let with_file = |page: PlannedPage| files.remove(&page.path).map(|file| (page, file));
    let documents: Vec<(PlannedPage, PreviewFile)> = plan.pages.into_iter().filter_map(with_file).collect();
    let limited: BTreeSet<String> = plan.without_page.into_iter().map(|(path, _)| path).collect();
    let now = app.clock.now();
    let built = |file: PreviewFile| BuiltFile {
        blob: NewBlob { id: app.rng.uuid_v7(now), sha256: file.sha256, size_bytes: file.size_bytes },
        content_type: media::by_name(&file.path),
        by_content: file.by_content,
        reason: if limited.contains(&file.path) {
            Some(Reason::ProjectLimit)
        } else {
            file.reason.as_deref().and_then(Reason::parse)
        },
        title: None,
        path: file.path,
    };
    let files = files.into_values().map(built).collect();
    let (spool, pages) = spool_documents(app, call.account_id, documents).await?;
    Ok(BuiltSite {
        pages,
        spool: Arc::new(spool),
        files,
        // Its originals are retained since it was processed.
        has_manifest: false,
        originals: Vec::new(),
        rules,
        slugs_before: site.slugs,
        listed: report.listed,
        notes: report.notes,
        errors: report.errors,
        missing: report.missing.into_iter().collect(),
    })
}

/// Plans the pages of a preview: of its HTML that was rewritten like a page.
fn plan(stored: &StoredPreview, site: &SiteState) -> PagePlan {
    let may_be_page = |file: &&PreviewFile| {
        let reason = file.reason.as_deref().and_then(Reason::parse);
        let is_small = u64::try_from(file.size_bytes).is_ok_and(|bytes| bytes <= MAX_HTML_BYTES as u64);
        is_html(&file.path) && is_small && matches!(reason, None | Some(Reason::ProjectLimit))
    };
    let html: Vec<HtmlFile<'_>> = stored
        .files
        .iter()
        .filter(may_be_page)
        .map(|file| HtmlFile { path: &file.path, size_bytes: file.size_bytes.unsigned_abs() })
        .collect();
    let paths: BTreeSet<&str> = stored.files.iter().map(|file| file.path.as_str()).collect();
    let existing = ExistingPages { by_path: &site.by_path, slugs: &site.slugs };
    plan_pages(&html, &paths, existing, site.projects_left)
}

/// Downloads the documents of pages to a temporary file, because they may not fit in memory.
async fn spool_documents(
    app: &App,
    account_id: Uuid,
    documents: Vec<(PlannedPage, PreviewFile)>,
) -> Result<(Spool, Vec<BuiltPage>), Problem> {
    let mut spool = Spool::new().map_err(|error| failed_on_disk(&error))?;
    let mut pages = Vec::with_capacity(documents.len());
    for batch in documents.chunks(BATCH_SIZE) {
        let bytes = batch.iter().map(|(_, file)| file.size_bytes.unsigned_abs()).sum();
        let _memory = app.deploy_admission.acquire_memory(bytes).await;
        let read = |(_, file): &(PlannedPage, PreviewFile)| {
            let name = Name { account_id, sha256: file.sha256 };
            let range = 0..file.size_bytes.unsigned_abs();
            async move {
                let parts: Vec<Bytes> = app.blobs.read(name, range).await?.try_collect().await?;
                Ok::<_, Problem>(parts.concat())
            }
        };
        let read = futures::stream::iter(batch).map(read).buffered(MAX_CONCURRENT);
        let read: Vec<Vec<u8>> = read.try_collect().await?;
        let pushed = tokio::task::spawn_blocking(move || {
            let spans: Vec<Span> = read.iter().map(|html| spool.push(html)).collect::<Result<_, _>>()?;
            Ok((spool, spans))
        });
        let pushed = pushed.await.unwrap_or_else(|panic| Err(std::io::Error::other(panic)));
        let (returned, spans) = pushed.map_err(|error| failed_on_disk(&error))?;
        spool = returned;
        pages.extend(batch.iter().zip(spans).map(|((page, file), html)| BuiltPage {
            path: page.path.clone(),
            slug: page.slug.clone(),
            title: page_title(file.title.as_deref().unwrap_or_default(), &page.slug),
            html,
        }));
    }
    Ok((spool, pages))
}
