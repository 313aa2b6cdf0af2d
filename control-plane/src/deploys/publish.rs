//! Publishes a built site in one transaction; visitors see all of it or nothing.

use std::collections::{BTreeMap, BTreeSet};

use contract::Change;
use domain::deploys::kept_files::OldFiles;
use domain::deploys::report::DeployStats;
use domain::pages::Publication;
use domain::scopes::Resource;
use domain::static_sites::deploy_notes::Note;
use domain::static_sites::reasons::left_out_by_name;
use store::Tx;
use store::blobs::{NewBlob, ReferencedBlob};
use store::deploys::files::{DeployFile, ServedDeploy};
use store::deploys::undo::{FoundPage, PageChange};
use store::deploys::{FinishedDeploy, Status};
use store::pages::{PagePath, PageUpsert, UpsertOutcome};
use store::subdomains::Subdomain;
use store::usage;
use uuid::Uuid;
use web::{Code, Problem};

use super::build::{BuiltFile, BuiltSite, release};
use super::kept_files::{self, Replacement};
use super::originals::replace_sources;
use super::unpack::BuiltPage;
use crate::App;
use crate::call::Call;

/// The previous state of a page that the deploy creates.
const UNPUBLISHED: Publication = Publication { is_published: false, publish_at: None };

/// Bytes of pages that are written in one statement.
const BATCH_BYTES: u64 = 2 << 20;

/// Where the site of a deploy comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Source<'a> {
    /// From the zip with this blob; `None` if all announced files were stored.
    Zip(Option<Uuid>),
    /// From the files of its preview: its host has this label.
    Preview(&'a str),
}

/// A page of a published site.
#[derive(Debug)]
pub(crate) struct PublishedPage {
    pub(crate) id: Uuid,
    pub(crate) slug: String,
    /// `created`, `updated` or `unchanged`.
    pub(crate) status: &'static str,
}

/// The result of publishing a site.
#[derive(Debug)]
pub(crate) struct Published {
    pub(crate) pages: Vec<PublishedPage>,
    /// Pages of the site that the zip lacks; they stay published.
    pub(crate) stale: Vec<FoundPage>,
    /// The deploy that this one replaces.
    pub(crate) previous_id: Option<Uuid>,
    /// Present if not all old files could be kept.
    pub(crate) note: Option<Note>,
    pub(crate) stats: DeployStats,
}

/// Publishes a built site on a subdomain. After an error nothing is published and the stored files are released.
pub(crate) async fn publish<S>(
    app: &App,
    call: &Call<S>,
    deploy_id: Uuid,
    source: Source<'_>,
    subdomain: &Subdomain,
    site: &BuiltSite,
    old_files: OldFiles,
) -> Result<Published, Problem> {
    let published = publish_in_transaction(app, call, deploy_id, source, subdomain, site, old_files).await;
    if published.is_err() {
        release(app, call.account_id, site).await;
    }
    published
}

async fn publish_in_transaction<S>(
    app: &App,
    call: &Call<S>,
    deploy_id: Uuid,
    source: Source<'_>,
    subdomain: &Subdomain,
    site: &BuiltSite,
    old_files: OldFiles,
) -> Result<Published, Problem> {
    let (account_id, now) = (call.account_id, app.clock.now());
    let mut tx = store::begin(&app.db).await?;
    usage::lock(&mut tx, account_id).await?;
    let served = store::deploys::files::lock_served_deploy(&mut tx, account_id, subdomain.id).await?;
    let previous_id = served.map(|served| served.deploy_id);
    let finished = FinishedDeploy {
        id: deploy_id,
        status: match source {
            Source::Zip(_) => Status::Uploaded,
            Source::Preview(_) => Status::Preview,
        },
        subdomain_id: subdomain.id,
        previous_id,
        files: i32::try_from(site.pages.len() + site.files.len()).unwrap_or(i32::MAX),
        rules: &site.rules,
    };
    if !store::deploys::finish_deploy(&mut tx, account_id, &finished, now).await? {
        return Err(Problem::new(Code::Conflict, "another process has published or abandoned this deploy"));
    }
    // What the deploy has stored and charged so far.
    let (mut unneeded, own_bytes) = match source {
        Source::Zip(zip_id) => (zip_id.into_iter().collect(), 0),
        Source::Preview(_) => store::deploys::previews::take_files(&mut tx, account_id, deploy_id).await?,
    };
    let found = store::deploys::undo::list_pages(&mut tx, account_id, subdomain.id).await?;
    let slugs: BTreeSet<&str> = site.pages.iter().map(|page| page.slug.as_str()).collect();
    let (known, stale): (Vec<FoundPage>, Vec<FoundPage>) =
        found.into_iter().partition(|page| slugs.contains(page.slug.as_str()));
    if known.iter().any(|page| !site.slugs_before.contains(&page.slug)) {
        return Err(changed_meanwhile());
    }
    let paths = site.paths();
    let is_moved = |page: &&FoundPage| page.path.as_deref().is_some_and(|path| paths.contains(path));
    let moved: Vec<&FoundPage> = stale.iter().filter(is_moved).collect();
    check_restrictions(call, &mut tx, site, &known, &moved).await?;

    let blobs = reference_blobs(&mut tx, account_id, site).await?;
    let mut files: Vec<DeployFile> = site.files.iter().filter_map(|file| deploy_file(file, &blobs)).collect();
    if let Some(ServedDeploy { deploy_id: previous, .. }) = served
        && !stale.is_empty()
    {
        // Pages that stay published may reference them.
        let previous_files = store::deploys::files::list_files(&mut tx, account_id, previous).await?;
        files.extend(
            previous_files
                .into_iter()
                .filter(|file| !paths.contains(file.path.as_str()) && left_out_by_name(&file.path).is_none()),
        );
    }
    let charged = own_bytes + served.map_or(0, |served| served.size_bytes);
    charge(call, &mut tx, charged, &files).await?;
    store::deploys::files::insert_files(&mut tx, account_id, deploy_id, &files).await?;
    store::deploys::files::update_served_deploy(&mut tx, account_id, subdomain.id, Some(deploy_id)).await?;
    let before = PagesBefore { known: &known, moved: &moved };
    let pages = write_pages(app, call, &mut tx, &finished, site, before).await?;
    let mut note = None;
    if let Some(from) = previous_id {
        let taken_over = files.iter().map(|file| file.path.as_str());
        let served: BTreeSet<&str> = paths.iter().copied().chain(taken_over).collect();
        let replacement = Replacement { from, to: Some(deploy_id), old_files };
        note = kept_files::replace(app, call, &mut tx, replacement, |path| served.contains(path)).await?;
    }
    let count = |status: &str| pages.iter().filter(|page| page.status == status).count();
    let stats =
        DeployStats { pages_created: count("created"), pages_updated: count("updated"), ..site.stats() };
    store::deploys::update_stats(&mut tx, account_id, deploy_id, &stats).await?;

    let retained = app.deploys.max_retained;
    unneeded
        .extend(store::deploys::files::delete_old_files(&mut tx, account_id, subdomain.id, retained).await?);
    if site.has_manifest || served.is_some_and(|served| served.has_manifest) {
        let own = site.has_manifest.then_some(deploy_id);
        let replaced: Vec<Uuid> = previous_id.into_iter().chain(own).collect();
        let sources = replace_sources(&mut tx, account_id, deploy_id, &replaced, site, &files, &blobs);
        unneeded.extend(sources.await?);
    }
    store::blobs::release_blobs(&mut tx, account_id, &unneeded, now).await?;
    let mut changes = vec![Change::Site { subdomain_id: subdomain.id }];
    if let Source::Preview(label) = source {
        changes.push(Change::Host { host: label.to_owned() });
    }
    call.set_changed(Resource::Subdomains, subdomain.id, &subdomain.name);
    call.commit(app, tx, changes).await?;
    Ok(Published { pages, stale, previous_id, note, stats })
}

/// The plan of the pages was made without a lock, and no longer fits.
fn changed_meanwhile() -> Problem {
    Problem::new(
        Code::Conflict,
        "pages were created or deleted while this deploy was processed; nothing was published",
    )
    .hint("try again; the plan of the pages is made anew")
}

/// Checks that the caller's restrictions allow updating the known pages, taking the paths of the moved ones, and
/// creating the others. HTML without a page is as new as one.
async fn check_restrictions<S>(
    call: &Call<S>,
    tx: &mut Tx,
    site: &BuiltSite,
    known: &[FoundPage],
    moved: &[&FoundPage],
) -> Result<(), Problem> {
    let ids: Vec<Uuid> = known.iter().chain(moved.iter().copied()).map(|page| page.id).collect();
    call.check_ids(tx, Resource::Pages, &ids).await?;
    let has_new = known.len() < site.pages.len() || site.files.iter().any(|file| file.reason.is_some());
    if has_new { call.check_new(Resource::Pages) } else { Ok(()) }
}

/// Turns the stored blobs into referenced ones and returns their ids by digest.
pub(super) async fn reference_blobs(
    tx: &mut Tx,
    account_id: Uuid,
    site: &BuiltSite,
) -> Result<BTreeMap<[u8; 32], Uuid>, Problem> {
    let distinct: BTreeMap<[u8; 32], NewBlob> =
        site.stored().map(|file| (file.blob.sha256, file.blob)).collect();
    let distinct: Vec<NewBlob> = distinct.into_values().collect();
    let settled = store::blobs::reference_blobs(tx, account_id, &distinct).await?;
    if settled.iter().any(|blob| blob.is_new) {
        // Another file with the same bytes was deleted meanwhile, and its blob with it.
        return Err(Problem::nothing_changed());
    }
    Ok(settled.into_iter().map(|ReferencedBlob { id, sha256, .. }| (sha256, id)).collect())
}

pub(super) fn deploy_file(file: &BuiltFile, blobs: &BTreeMap<[u8; 32], Uuid>) -> Option<DeployFile> {
    Some(DeployFile {
        path: file.path.clone(),
        blob_id: *blobs.get(&file.blob.sha256)?,
        size_bytes: file.blob.size_bytes,
        content_type: file.content_type.to_owned(),
        by_content: file.by_content,
        reason: file.reason.map(|reason| reason.as_str().to_owned()),
        title: file.title.clone(),
    })
}

/// Charges the served files to the plan's storage and credits the files that they replace.
pub(super) async fn charge<S>(
    call: &Call<S>,
    tx: &mut Tx,
    previous_bytes: i64,
    files: &[DeployFile],
) -> Result<(), Problem> {
    let bytes: i64 = files.iter().map(|file| file.size_bytes).sum();
    if bytes <= previous_bytes {
        return Ok(usage::release_bytes(tx, call.account_id, previous_bytes - bytes).await?);
    }
    let limit = call.limits().storage_bytes;
    if usage::reserve_bytes(tx, call.account_id, bytes - previous_bytes, limit).await? {
        return Ok(());
    }
    Err(call.storage_exceeded(bytes - previous_bytes))
}

/// The pages that a deploy changes, as they were before it.
#[derive(Clone, Copy)]
struct PagesBefore<'a> {
    /// Pages with a slug of the deploy.
    known: &'a [FoundPage],
    /// Other pages that lose their path to another page or file.
    moved: &'a [&'a FoundPage],
}

async fn write_pages<S>(
    app: &App,
    call: &Call<S>,
    tx: &mut Tx,
    deploy: &FinishedDeploy<'_>,
    site: &BuiltSite,
    before: PagesBefore<'_>,
) -> Result<Vec<PublishedPage>, Problem> {
    let (account_id, now) = (call.account_id, app.clock.now());
    let previous: BTreeMap<Uuid, &FoundPage> = before.known.iter().map(|page| (page.id, page)).collect();
    // In the order of the slugs, because other accounts may publish the same ones, of which the first gets the short URL.
    let mut pages: Vec<&BuiltPage> = site.pages.iter().collect();
    pages.sort_by(|a, b| a.slug.cmp(&b.slug));
    let mut published = Vec::with_capacity(pages.len());
    let mut changes: Vec<PageChange> = before.moved.iter().map(|page| before_deploy(page)).collect();
    let mut paths: Vec<PagePath> =
        before.moved.iter().map(|page| PagePath { page_id: page.id, path: None }).collect();
    let mut rest = pages.as_slice();
    while !rest.is_empty() {
        let (batch, others) = rest.split_at(batch_len(rest));
        rest = others;
        let mut upserts = Vec::with_capacity(batch.len());
        for page in batch {
            upserts.push(PageUpsert {
                id: app.rng.uuid_v7(now),
                folder_id: None,
                subdomain_id: deploy.subdomain_id,
                slug: page.slug.clone(),
                title: page.title.clone(),
                html: read_document(site, page).await?,
                // The file is the whole document, so it has no separate CSS.
                css: Some(None),
                metadata: None,
                is_published: Some(true),
                deploy_id: Some(deploy.id),
            });
        }
        let outcomes = store::pages::upsert_pages(tx, account_id, upserts, now).await?;
        let is_created = |outcome: &&UpsertOutcome| matches!(outcome, UpsertOutcome::Created(_));
        let created = i64::try_from(outcomes.iter().filter(is_created).count()).unwrap_or(i64::MAX);
        if !usage::reserve_projects(tx, account_id, created, call.limits().projects).await? {
            return Err(changed_meanwhile());
        }
        for (page, outcome) in batch.iter().zip(outcomes) {
            let (id, status) = match outcome {
                UpsertOutcome::Created(id) => (id, "created"),
                UpsertOutcome::Updated(id) => (id, "updated"),
                UpsertOutcome::Unchanged(id) => (id, "unchanged"),
            };
            let found = previous.get(&id);
            let is_elsewhere = found.is_none_or(|found| found.path.as_deref() != Some(page.path.as_str()));
            if is_elsewhere {
                paths.push(PagePath { page_id: id, path: Some(page.path.clone()) });
            }
            if is_elsewhere || !matches!(outcome, UpsertOutcome::Unchanged(_)) {
                changes.push(found.map_or_else(|| before_creation(id), |found| before_deploy(found)));
            }
            published.push(PublishedPage { id, slug: page.slug.clone(), status });
        }
    }
    store::pages::update_paths(tx, account_id, &paths).await?;
    store::deploys::undo::insert_changes(tx, account_id, deploy.id, &changes).await?;
    Ok(published)
}

fn before_deploy(page: &FoundPage) -> PageChange {
    let FoundPage { id, version_id, publication, path, .. } = page.clone();
    PageChange { page_id: id, version_id, publication, path }
}

fn before_creation(page_id: Uuid) -> PageChange {
    PageChange { page_id, version_id: None, publication: UNPUBLISHED, path: None }
}

/// Returns how many of the first pages are written in one statement, at least one.
fn batch_len(pages: &[&BuiltPage]) -> usize {
    let mut bytes = 0;
    let fits = |page: &&&BuiltPage| {
        bytes += page.html.bytes;
        bytes <= BATCH_BYTES
    };
    pages.iter().take_while(fits).count().max(1)
}

async fn read_document(site: &BuiltSite, page: &BuiltPage) -> Result<String, Problem> {
    let bytes = site.spool.read(page.html).await;
    bytes.and_then(|bytes| String::from_utf8(bytes).map_err(std::io::Error::other)).map_err(|error| {
        tracing::error!(%error, "failed to read a rewritten page from disk");
        Problem::nothing_changed()
    })
}
