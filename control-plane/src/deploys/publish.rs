//! Publishing a built site: all of it in one transaction, seen by every visitor from its commit on.

use std::collections::{BTreeMap, BTreeSet};

use contract::Change;
use domain::pages::Publication;
use domain::scopes::Resource;
use store::Tx;
use store::blobs::{NewBlob, SettledBlob};
use store::deploys::files::{DeployFile, Served};
use store::deploys::undo::{FoundPage, PageChange};
use store::pages::{PageUpsert, Upserted};
use store::subdomains::Subdomain;
use store::usage::{self, Counter};
use uuid::Uuid;
use web::{Code, Problem};

use super::build::{BuiltFile, Site, release};
use crate::App;
use crate::call::Call;

/// How a page is that there is none of.
const HIDDEN: Publication = Publication { is_published: false, publish_at: None };

/// A page of a published site.
#[derive(Debug)]
pub(crate) struct PublishedPage {
    pub(crate) id: Uuid,
    pub(crate) slug: String,
    /// `created`, `updated` or `unchanged`.
    pub(crate) status: &'static str,
}

/// What publishing did.
#[derive(Debug)]
pub(crate) struct Published {
    pub(crate) pages: Vec<PublishedPage>,
    /// Pages of the site that are not in the zip, and stay.
    pub(crate) stale: Vec<FoundPage>,
    /// The deploy that was served before.
    pub(crate) previous_id: Option<Uuid>,
}

/// Publishes a built site on a subdomain.
///
/// # Errors
/// The key or the plan does not allow it, or a store is away; then nothing was published.
pub(crate) async fn publish<S>(
    app: &App,
    call: &Call<S>,
    deploy_id: Uuid,
    zip_id: Uuid,
    subdomain: &Subdomain,
    site: &Site,
) -> Result<Published, Problem> {
    let published = in_one_transaction(app, call, deploy_id, zip_id, subdomain, site).await;
    if published.is_err() {
        release(app, call.account_id, &site.files).await;
    }
    published
}

async fn in_one_transaction<S>(
    app: &App,
    call: &Call<S>,
    deploy_id: Uuid,
    zip_id: Uuid,
    subdomain: &Subdomain,
    site: &Site,
) -> Result<Published, Problem> {
    let (account_id, now) = (call.account_id, app.clock.now());
    let mut tx = store::begin(&app.db).await?;
    usage::lock(&mut tx, account_id).await?;
    let served = store::deploys::files::lock_served(&mut tx, account_id, subdomain.id).await?;
    let previous_id = served.map(|served| served.deploy_id);
    let files = i32::try_from(site.pages.len() + site.files.len() + site.errors.len()).unwrap_or(i32::MAX);
    let (id, site_id) = (deploy_id, subdomain.id);
    if !store::deploys::finish_deploy(&mut tx, account_id, id, site_id, previous_id, files, now).await? {
        return Err(Problem::new(Code::Conflict, "this deploy was published, or given up, meanwhile"));
    }
    let found = store::deploys::undo::list_pages(&mut tx, account_id, subdomain.id).await?;
    let slugs: BTreeSet<&str> = site.pages.iter().map(|page| page.slug.as_str()).collect();
    let (known, stale): (Vec<FoundPage>, Vec<FoundPage>) =
        found.into_iter().partition(|page| slugs.contains(page.slug.as_str()));
    check_reach(call, &mut tx, site, &known).await?;

    let mut files = settle(&mut tx, account_id, &site.files).await?;
    if let Some(Served { deploy_id: previous, .. }) = served
        && !stale.is_empty()
    {
        // Pages that stay may need them.
        let before = store::deploys::files::list_files(&mut tx, account_id, previous).await?;
        let paths: BTreeSet<String> = files.iter().map(|file| file.path.clone()).collect();
        files.extend(before.into_iter().filter(|file| !paths.contains(&file.path)));
    }
    charge(call, &mut tx, served.map_or(0, |served| served.size_bytes), &files).await?;
    store::deploys::files::insert_files(&mut tx, account_id, deploy_id, &files).await?;
    store::deploys::files::update_served(&mut tx, account_id, subdomain.id, Some(deploy_id)).await?;
    let pages = write_pages(app, call, &mut tx, deploy_id, subdomain.id, site, &known).await?;

    let kept = app.deploys.kept;
    let mut unneeded =
        store::deploys::files::delete_old_files(&mut tx, account_id, subdomain.id, kept).await?;
    unneeded.push(zip_id);
    store::blobs::release_blobs(&mut tx, account_id, &unneeded, now).await?;
    app.commit(tx, vec![Change::Site { subdomain_id: subdomain.id }]).await?;
    Ok(Published { pages, stale, previous_id })
}

/// The key may write these pages, and make those there are none of yet.
async fn check_reach<S>(
    call: &Call<S>,
    tx: &mut Tx,
    site: &Site,
    known: &[FoundPage],
) -> Result<(), Problem> {
    let ids: Vec<Uuid> = known.iter().map(|page| page.id).collect();
    call.check_ids(tx, Resource::Pages, &ids).await?;
    if known.len() < site.pages.len() { call.check_new(Resource::Pages) } else { Ok(()) }
}

/// The files with their blobs, which from now on are referred to.
async fn settle(tx: &mut Tx, account_id: Uuid, files: &[BuiltFile]) -> Result<Vec<DeployFile>, Problem> {
    let distinct: BTreeMap<[u8; 32], NewBlob> =
        files.iter().map(|file| (file.blob.sha256, file.blob)).collect();
    let distinct: Vec<NewBlob> = distinct.into_values().collect();
    let settled = store::blobs::settle_blobs(tx, account_id, &distinct).await?;
    if settled.iter().any(|blob| blob.is_new) {
        // Something else that had the same bytes was deleted in between, and took them along.
        return Err(Problem::away(true));
    }
    let ids: BTreeMap<[u8; 32], Uuid> =
        settled.into_iter().map(|SettledBlob { id, sha256, .. }| (sha256, id)).collect();
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

/// Files that are served count against the plan, those they replace don't any more.
pub(super) async fn charge<S>(
    call: &Call<S>,
    tx: &mut Tx,
    before: i64,
    files: &[DeployFile],
) -> Result<(), Problem> {
    let after: i64 = files.iter().map(|file| file.size_bytes).sum();
    if after <= before {
        return Ok(usage::give_back_bytes(tx, call.account_id, before - after).await?);
    }
    let limit = call.limits().storage_bytes;
    if usage::take_bytes(tx, call.account_id, after - before, limit).await? {
        return Ok(());
    }
    Err(call.storage_exceeded(after - before))
}

async fn write_pages<S>(
    app: &App,
    call: &Call<S>,
    tx: &mut Tx,
    deploy_id: Uuid,
    subdomain_id: Uuid,
    site: &Site,
    known: &[FoundPage],
) -> Result<Vec<PublishedPage>, Problem> {
    let (account_id, now) = (call.account_id, app.clock.now());
    let before: BTreeMap<Uuid, &FoundPage> = known.iter().map(|page| (page.id, page)).collect();
    let change_of = |page_id: Uuid| PageChange {
        page_id,
        version_id: before.get(&page_id).and_then(|page| page.version_id),
        publication: before.get(&page_id).map_or(HIDDEN, |page| page.publication),
    };
    let (mut published, mut changes) = (Vec::with_capacity(site.pages.len()), Vec::new());
    for page in &site.pages {
        let html = site.documents.read(page.html).await.map_err(|error| {
            tracing::error!(%error, "a rewritten page can't be read back");
            Problem::away(true)
        })?;
        let wanted = PageUpsert {
            id: app.rng.uuid_v7(now),
            folder_id: None,
            subdomain_id,
            slug: page.slug.clone(),
            title: page.title.clone(),
            html,
            // A file is the whole document.
            css: Some(None),
            metadata: None,
            is_published: Some(true),
            deploy_id: Some(deploy_id),
        };
        let (id, status) = match store::pages::upsert_page(tx, account_id, wanted, now).await? {
            Upserted::Created(id) => {
                let limit = call.limits().projects;
                if !usage::take(tx, account_id, Counter::Projects, limit).await? {
                    return Err(call.quota_exceeded("projects", limit));
                }
                changes.push(change_of(id));
                (id, "created")
            }
            Upserted::Updated(id) => {
                changes.push(change_of(id));
                (id, "updated")
            }
            Upserted::Unchanged(id) => (id, "unchanged"),
        };
        published.push(PublishedPage { id, slug: page.slug.clone(), status });
    }
    store::deploys::undo::insert_changes(tx, account_id, deploy_id, &changes).await?;
    Ok(published)
}
