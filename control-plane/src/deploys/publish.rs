//! Publishes a built site in one transaction; visitors see all of it or nothing.

use std::collections::{BTreeMap, BTreeSet};

use contract::Change;
use domain::pages::Publication;
use domain::scopes::Resource;
use store::Tx;
use store::blobs::{NewBlob, ReferencedBlob};
use store::deploys::files::{DeployFile, ServedDeploy};
use store::deploys::undo::{FoundPage, PageChange};
use store::pages::{PageUpsert, UpsertOutcome};
use store::subdomains::Subdomain;
use store::usage;
use uuid::Uuid;
use web::{Code, Problem};

use super::build::{BuiltFile, BuiltSite, release};
use super::unpack::BuiltPage;
use crate::App;
use crate::call::Call;

/// The previous state of a page that the deploy creates.
const UNPUBLISHED: Publication = Publication { is_published: false, publish_at: None };

/// Bytes of pages that are written in one statement.
const BATCH_BYTES: u64 = 2 << 20;

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
}

/// Publishes a built site on a subdomain. After an error nothing is published and the stored files are released.
pub(crate) async fn publish<S>(
    app: &App,
    call: &Call<S>,
    deploy_id: Uuid,
    zip_id: Uuid,
    subdomain: &Subdomain,
    site: &BuiltSite,
) -> Result<Published, Problem> {
    let published = publish_in_transaction(app, call, deploy_id, zip_id, subdomain, site).await;
    if published.is_err() {
        release(app, call.account_id, &site.files).await;
    }
    published
}

async fn publish_in_transaction<S>(
    app: &App,
    call: &Call<S>,
    deploy_id: Uuid,
    zip_id: Uuid,
    subdomain: &Subdomain,
    site: &BuiltSite,
) -> Result<Published, Problem> {
    let (account_id, now) = (call.account_id, app.clock.now());
    let mut tx = store::begin(&app.db).await?;
    usage::lock(&mut tx, account_id).await?;
    let served = store::deploys::files::lock_served_deploy(&mut tx, account_id, subdomain.id).await?;
    let previous_id = served.map(|served| served.deploy_id);
    let files = i32::try_from(site.pages.len() + site.files.len() + site.errors.len()).unwrap_or(i32::MAX);
    let (id, site_id) = (deploy_id, subdomain.id);
    if !store::deploys::finish_deploy(&mut tx, account_id, id, site_id, previous_id, files, now).await? {
        return Err(Problem::new(Code::Conflict, "another process has published or abandoned this deploy"));
    }
    let found = store::deploys::undo::list_pages(&mut tx, account_id, subdomain.id).await?;
    let slugs: BTreeSet<&str> = site.pages.iter().map(|page| page.slug.as_str()).collect();
    let (known, stale): (Vec<FoundPage>, Vec<FoundPage>) =
        found.into_iter().partition(|page| slugs.contains(page.slug.as_str()));
    check_restrictions(call, &mut tx, site, &known).await?;

    let mut files = reference_blobs(&mut tx, account_id, &site.files).await?;
    if let Some(ServedDeploy { deploy_id: previous, .. }) = served
        && !stale.is_empty()
    {
        // Pages that stay published may reference them.
        let previous_files = store::deploys::files::list_files(&mut tx, account_id, previous).await?;
        let paths: BTreeSet<String> = files.iter().map(|file| file.path.clone()).collect();
        files.extend(previous_files.into_iter().filter(|file| !paths.contains(&file.path)));
    }
    charge(call, &mut tx, served.map_or(0, |served| served.size_bytes), &files).await?;
    store::deploys::files::insert_files(&mut tx, account_id, deploy_id, &files).await?;
    store::deploys::files::update_served_deploy(&mut tx, account_id, subdomain.id, Some(deploy_id)).await?;
    let pages = write_pages(app, call, &mut tx, deploy_id, subdomain.id, site, &known).await?;

    let retained = app.deploys.max_retained;
    let mut unneeded =
        store::deploys::files::delete_old_files(&mut tx, account_id, subdomain.id, retained).await?;
    unneeded.push(zip_id);
    store::blobs::release_blobs(&mut tx, account_id, &unneeded, now).await?;
    app.commit(tx, vec![Change::Site { subdomain_id: subdomain.id }]).await?;
    Ok(Published { pages, stale, previous_id })
}

/// Checks that the caller's restrictions allow updating the known pages and creating the others.
async fn check_restrictions<S>(
    call: &Call<S>,
    tx: &mut Tx,
    site: &BuiltSite,
    known: &[FoundPage],
) -> Result<(), Problem> {
    let ids: Vec<Uuid> = known.iter().map(|page| page.id).collect();
    call.check_ids(tx, Resource::Pages, &ids).await?;
    if known.len() < site.pages.len() { call.check_new(Resource::Pages) } else { Ok(()) }
}

/// Turns the stored blobs into referenced ones and returns the files of the deploy.
async fn reference_blobs(
    tx: &mut Tx,
    account_id: Uuid,
    files: &[BuiltFile],
) -> Result<Vec<DeployFile>, Problem> {
    let distinct: BTreeMap<[u8; 32], NewBlob> =
        files.iter().map(|file| (file.blob.sha256, file.blob)).collect();
    let distinct: Vec<NewBlob> = distinct.into_values().collect();
    let settled = store::blobs::reference_blobs(tx, account_id, &distinct).await?;
    if settled.iter().any(|blob| blob.is_new) {
        // Another file with the same bytes was deleted meanwhile, and its blob with it.
        return Err(Problem::nothing_changed());
    }
    let ids: BTreeMap<[u8; 32], Uuid> =
        settled.into_iter().map(|ReferencedBlob { id, sha256, .. }| (sha256, id)).collect();
    let stored = |file: &BuiltFile| {
        Some(DeployFile {
            path: file.path.clone(),
            blob_id: *ids.get(&file.blob.sha256)?,
            size_bytes: file.blob.size_bytes,
            content_type: file.content_type.to_owned(),
            by_content: file.by_content,
        })
    };
    Ok(files.iter().filter_map(stored).collect())
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

async fn write_pages<S>(
    app: &App,
    call: &Call<S>,
    tx: &mut Tx,
    deploy_id: Uuid,
    subdomain_id: Uuid,
    site: &BuiltSite,
    known: &[FoundPage],
) -> Result<Vec<PublishedPage>, Problem> {
    let (account_id, now) = (call.account_id, app.clock.now());
    let previous: BTreeMap<Uuid, &FoundPage> = known.iter().map(|page| (page.id, page)).collect();
    let change_of = |page_id: Uuid| PageChange {
        page_id,
        version_id: previous.get(&page_id).and_then(|page| page.version_id),
        publication: previous.get(&page_id).map_or(UNPUBLISHED, |page| page.publication),
    };
    // In the order of the slugs, because other accounts may publish the same ones, of which the first gets the short URL.
    let mut pages: Vec<&BuiltPage> = site.pages.iter().collect();
    pages.sort_by(|a, b| a.slug.cmp(&b.slug));
    let (mut published, mut changes) = (Vec::with_capacity(pages.len()), Vec::new());
    let mut rest = pages.as_slice();
    while !rest.is_empty() {
        let (batch, others) = rest.split_at(batch_len(rest));
        rest = others;
        let mut upserts = Vec::with_capacity(batch.len());
        for page in batch {
            upserts.push(PageUpsert {
                id: app.rng.uuid_v7(now),
                folder_id: None,
                subdomain_id,
                slug: page.slug.clone(),
                title: page.title.clone(),
                html: read_document(site, page).await?,
                // The file is the whole document, so it has no separate CSS.
                css: Some(None),
                metadata: None,
                is_published: Some(true),
                deploy_id: Some(deploy_id),
            });
        }
        let outcomes = store::pages::upsert_pages(tx, account_id, upserts, now).await?;
        let is_created = |outcome: &&UpsertOutcome| matches!(outcome, UpsertOutcome::Created(_));
        let created = i64::try_from(outcomes.iter().filter(is_created).count()).unwrap_or(i64::MAX);
        let limit = call.limits().projects;
        if !usage::reserve_projects(tx, account_id, created, limit).await? {
            return Err(call.quota_exceeded("projects", limit));
        }
        for (page, outcome) in batch.iter().zip(outcomes) {
            let (id, status) = match outcome {
                UpsertOutcome::Created(id) => (id, "created"),
                UpsertOutcome::Updated(id) => (id, "updated"),
                UpsertOutcome::Unchanged(id) => (id, "unchanged"),
            };
            if !matches!(outcome, UpsertOutcome::Unchanged(_)) {
                changes.push(change_of(id));
            }
            published.push(PublishedPage { id, slug: page.slug.clone(), status });
        }
    }
    store::deploys::undo::insert_changes(tx, account_id, deploy_id, &changes).await?;
    Ok(published)
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
