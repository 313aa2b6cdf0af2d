//! Publishes a built site in one transaction; visitors see all of it or nothing.

use std::collections::{BTreeMap, BTreeSet};

use contract::Change;
use domain::deploys::kept_files::OldFiles;
use domain::deploys::report::DeployStats;
use domain::pages::Publication;
use domain::scopes::Resource;
use domain::static_sites::deploy_notes::Note;
use store::Tx;
use store::blobs::{NewBlob, ReferencedBlob};
use store::deploys::files::DeployFile;
use store::deploys::undo::{FoundPage, PageChange};
use store::deploys::{FinishedDeploy, Status};
use store::pages::{PagePath, UpsertOutcome};
use store::subdomains::Subdomain;
use store::usage;
use uuid::Uuid;
use web::{Code, Problem};

use super::build::{BuiltSite, release};
use super::kept_files::{self, Replacement};
use super::originals::replace_sources;
use super::site_changes::{
    SiteChanges, batch_len, changed_meanwhile, in_order, moved, status_of, upserts_of,
};
use super::stored_files::BuiltFile;
use crate::App;
use crate::call::Call;

/// The previous state of a page that the deploy creates.
const UNPUBLISHED: Publication = Publication { is_published: false, publish_at: None };

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
    /// `None` for a page that a dry run would create.
    pub(crate) id: Option<Uuid>,
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
    let SiteChanges { known, stale, taken_over } =
        SiteChanges::find(call, &mut tx, subdomain.id, served, site).await?;
    let paths = site.paths();
    let moved = moved(&stale, &paths);
    let blobs = reference_blobs(&mut tx, account_id, site).await?;
    let mut files: Vec<DeployFile> = site.files.iter().filter_map(|file| deploy_file(file, &blobs)).collect();
    files.extend(taken_over);
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
    charge_bytes(call, tx, previous_bytes, files.iter().map(|file| file.size_bytes).sum()).await
}

/// As [`charge`], by the sum of the sizes.
pub(super) async fn charge_bytes<S>(
    call: &Call<S>,
    tx: &mut Tx,
    previous_bytes: i64,
    bytes: i64,
) -> Result<(), Problem> {
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
    let pages = in_order(site);
    let mut published = Vec::with_capacity(pages.len());
    let mut changes: Vec<PageChange> = before.moved.iter().map(|page| before_deploy(page)).collect();
    let mut paths: Vec<PagePath> =
        before.moved.iter().map(|page| PagePath { page_id: page.id, path: None }).collect();
    let mut rest = pages.as_slice();
    while !rest.is_empty() {
        let (batch, others) = rest.split_at(batch_len(rest));
        rest = others;
        let upserts = upserts_of(app, site, batch, deploy.subdomain_id, deploy.id, now).await?;
        let outcomes = store::pages::upsert_pages(tx, account_id, upserts, now).await?;
        let is_created = |outcome: &&UpsertOutcome| matches!(outcome, UpsertOutcome::Created(_));
        let created = i64::try_from(outcomes.iter().filter(is_created).count()).unwrap_or(i64::MAX);
        if !usage::reserve_projects(tx, account_id, created, call.limits().projects).await? {
            return Err(changed_meanwhile());
        }
        for (page, outcome) in batch.iter().zip(outcomes) {
            let (id, status) = status_of(outcome);
            let found = previous.get(&id);
            let is_elsewhere = found.is_none_or(|found| found.path.as_deref() != Some(page.path.as_str()));
            if is_elsewhere {
                paths.push(PagePath { page_id: id, path: Some(page.path.clone()) });
            }
            if is_elsewhere || !matches!(outcome, UpsertOutcome::Unchanged(_)) {
                changes.push(found.map_or_else(|| before_creation(id), |found| before_deploy(found)));
            }
            published.push(PublishedPage { id: Some(id), slug: page.slug.clone(), status });
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
