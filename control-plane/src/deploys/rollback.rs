//! Rolls back the served deploy: its site returns to the state before it.
//!
//! Updated pages return to their previous version, if that is still stored, and to their previous visibility and path.
//! Created pages are unpublished instead of deleted: they may have entries by now, and their slug should not be lost. The
//! redirects and headers of the previous deploy apply again, because they are stored with it.

use std::collections::BTreeSet;

use contract::Change;
use domain::deploys::kept_files::OldFiles;
use domain::pages::PublicationChange;
use domain::scopes::Resource;
use domain::static_sites::deploy_notes::Note;
use store::deploys::Deploy;
use store::deploys::undo::PageChange as RecordedChange;
use store::pages::{PageChange, PagePath};
use store::usage;
use uuid::Uuid;
use web::{Code, Problem};

use super::kept_files::{self, Replacement};
use super::publish::charge;
use crate::App;
use crate::call::Call;

/// A page that the deploy had changed.
#[derive(Debug)]
pub(crate) struct RolledBackPage {
    pub(crate) id: Uuid,
    pub(crate) slug: String,
    /// `restored`, `unpublished`, or `kept` if its previous version is no longer stored.
    pub(crate) status: &'static str,
}

/// The result of rolling a deploy back.
#[derive(Debug)]
pub(crate) struct Rollback {
    pub(crate) pages: Vec<RolledBackPage>,
    /// Present if not all files of the deploy could be kept.
    pub(crate) note: Option<Note>,
}

/// Rolls back a deploy. Returns 409 if it is not the served one, or the files of the previous deploy are gone.
pub(crate) async fn rollback<S>(
    app: &App,
    call: &Call<S>,
    deploy: &Deploy,
    old_files: OldFiles,
) -> Result<Rollback, Problem> {
    let account_id = call.account_id;
    let not_served = || {
        Problem::new(Code::Conflict, "only the served deploy can be rolled back")
            .hint("roll back the newest deploy first; each leads to the previous one")
    };
    let subdomain_id = deploy.subdomain_id.ok_or_else(not_served)?;
    let mut tx = store::begin(&app.db).await?;
    usage::lock(&mut tx, account_id).await?;
    let served = store::deploys::files::lock_served_deploy(&mut tx, account_id, subdomain_id).await?;
    let served = served.filter(|served| served.deploy_id == deploy.id).ok_or_else(not_served)?;
    let mut files = Vec::new();
    if let Some(previous_id) = deploy.previous_id {
        let previous = store::deploys::find_deploy(&mut tx, account_id, previous_id).await?;
        if !previous.is_some_and(|previous| previous.has_files) {
            return Err(Problem::new(
                Code::Conflict,
                "the files of the previous deploy are no longer stored",
            ));
        }
        files = store::deploys::files::list_files(&mut tx, account_id, previous_id).await?;
    }
    charge(call, &mut tx, served.size_bytes, &files).await?;
    store::deploys::files::update_served_deploy(&mut tx, account_id, subdomain_id, deploy.previous_id)
        .await?;
    let replacement = Replacement { from: deploy.id, to: deploy.previous_id, old_files };
    let paths: BTreeSet<&str> = files.iter().map(|file| file.path.as_str()).collect();
    let note = kept_files::replace(app, call, &mut tx, replacement, |path| paths.contains(path)).await?;
    store::deploys::update_rolled_back(&mut tx, account_id, deploy.id).await?;
    if deploy.has_manifest {
        // Only the served deploy retains its original files.
        let originals = store::deploys::sources::delete_sources(&mut tx, account_id, &[deploy.id]).await?;
        store::blobs::release_blobs(&mut tx, account_id, &originals, app.clock.now()).await?;
    }
    let changes = store::deploys::undo::list_changes(&mut tx, account_id, deploy.id).await?;
    let ids: Vec<Uuid> = changes.iter().map(|change| change.page_id).collect();
    call.check_ids(&mut tx, Resource::Pages, &ids).await?;
    let path_of = |change: &RecordedChange| PagePath { page_id: change.page_id, path: change.path.clone() };
    let page_paths: Vec<PagePath> = changes.iter().map(path_of).collect();
    store::pages::update_paths(&mut tx, account_id, &page_paths).await?;
    let mut pages = Vec::new();
    for change in changes {
        pages.extend(rollback_page(app, call, &mut tx, change).await?);
    }
    call.set_changed(Resource::Subdomains, subdomain_id, deploy.subdomain.as_deref().unwrap_or_default());
    call.commit(app, tx, vec![Change::Site { subdomain_id }]).await?;
    Ok(Rollback { pages, note })
}

async fn rollback_page<S>(
    app: &App,
    call: &Call<S>,
    tx: &mut store::Tx,
    RecordedChange { page_id, version_id, publication, .. }: RecordedChange,
) -> Result<Option<RolledBackPage>, Problem> {
    let account_id = call.account_id;
    let (content, status) = match version_id {
        None => (None, "unpublished"),
        Some(version_id) => {
            let content = store::versions::find_version(tx, account_id, page_id, version_id).await?;
            let status = if content.is_some() { "restored" } else { "kept" };
            (content, status)
        }
    };
    // Restores the visibility even without the old content: an unpublished page must not become visible.
    let publication = PublicationChange {
        is_published: Some(publication.is_published),
        publish_at: publication.publish_at.map(Some),
    };
    let change = PageChange { publication, ..content.map(PageChange::from).unwrap_or_default() };
    store::pages::update_page(tx, account_id, page_id, change, app.clock.now()).await?;
    let page = store::pages::find_page(tx, account_id, page_id).await?;
    Ok(page.map(|page| RolledBackPage { id: page_id, slug: page.summary.slug, status }))
}
