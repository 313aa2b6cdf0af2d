//! Undoing the deploy that is served: its site becomes what it was before.
//!
//! Pages it edited go back to the version they had, as far as that is still kept, and are seen or not as they were
//! before. Pages it made are unpublished and not deleted: they may have entries by now, and an address that should
//! not be lost.

use contract::Change;
use domain::pages::Wish;
use domain::scopes::Resource;
use store::deploys::Deploy;
use store::deploys::undo::PageChange as Undoing;
use store::pages::PageChange;
use store::usage;
use uuid::Uuid;
use web::{Code, Problem};

use super::publish::charge;
use crate::App;
use crate::call::Call;

/// A page that a deploy had changed.
#[derive(Debug)]
pub(crate) struct UndonePage {
    pub(crate) id: Uuid,
    pub(crate) slug: String,
    /// `restored`, `unpublished`, or `kept` if the version it had is no longer kept.
    pub(crate) status: &'static str,
}

/// What undoing did.
#[derive(Debug)]
pub(crate) struct Undone {
    pub(crate) pages: Vec<UndonePage>,
}

/// Undoes a deploy.
///
/// # Errors
/// It is not the one that is served, or the one before it is no longer kept; the plan does not hold that one's files;
/// or a store is away.
pub(crate) async fn undo<S>(app: &App, call: &Call<S>, deploy: &Deploy) -> Result<Undone, Problem> {
    let account_id = call.account_id;
    let not_served = || {
        Problem::new(Code::Conflict, "only the deploy that is served can be rolled back")
            .hint("roll back the newest one first: each leads to the one before it")
    };
    let subdomain_id = deploy.subdomain_id.ok_or_else(not_served)?;
    let mut tx = store::begin(&app.db).await?;
    usage::lock(&mut tx, account_id).await?;
    let served = store::deploys::files::lock_served(&mut tx, account_id, subdomain_id).await?;
    let served = served.filter(|served| served.deploy_id == deploy.id).ok_or_else(not_served)?;
    let mut files = Vec::new();
    if let Some(previous_id) = deploy.previous_id {
        let previous = store::deploys::find_deploy(&mut tx, account_id, previous_id).await?;
        if !previous.is_some_and(|previous| previous.has_files) {
            return Err(Problem::new(Code::Conflict, "the files of the deploy before it are no longer kept"));
        }
        files = store::deploys::files::list_files(&mut tx, account_id, previous_id).await?;
    }
    charge(call, &mut tx, served.size_bytes, &files).await?;
    store::deploys::files::update_served(&mut tx, account_id, subdomain_id, deploy.previous_id).await?;
    store::deploys::update_rolled_back(&mut tx, account_id, deploy.id).await?;
    let changes = store::deploys::undo::list_changes(&mut tx, account_id, deploy.id).await?;
    let ids: Vec<Uuid> = changes.iter().map(|change| change.page_id).collect();
    call.check_ids(&mut tx, Resource::Pages, &ids).await?;
    let mut pages = Vec::new();
    for change in changes {
        pages.extend(undo_page(app, call, &mut tx, change).await?);
    }
    app.commit(tx, vec![Change::Site { subdomain_id }]).await?;
    Ok(Undone { pages })
}

async fn undo_page<S>(
    app: &App,
    call: &Call<S>,
    tx: &mut store::Tx,
    Undoing { page_id, version_id, publication }: Undoing,
) -> Result<Option<UndonePage>, Problem> {
    let account_id = call.account_id;
    let (content, status) = match version_id {
        None => (None, "unpublished"),
        Some(version_id) => {
            let content = store::versions::find_version(tx, account_id, page_id, version_id).await?;
            let status = if content.is_some() { "restored" } else { "kept" };
            (content, status)
        }
    };
    // Also where what it said is no longer kept: a page nobody saw is not to be seen for that.
    let publication =
        Wish { is_published: Some(publication.is_published), publish_at: publication.publish_at.map(Some) };
    let change = PageChange { publication, ..content.map(PageChange::from).unwrap_or_default() };
    store::pages::update_page(tx, account_id, page_id, change, app.clock.now()).await?;
    let page = store::pages::find_page(tx, account_id, page_id).await?;
    Ok(page.map(|page| UndonePage { id: page_id, slug: page.summary.slug, status }))
}
