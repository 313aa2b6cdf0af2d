//! Compares a built site with the pages and files of its subdomain: what publishing changes, and what stays as it is. Publishing
//! and a dry run both begin with it.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use domain::scopes::Resource;
use domain::static_sites::reasons::left_out_by_name;
use store::Tx;
use store::deploys::files::{DeployFile, ServedDeploy, list_files};
use store::deploys::undo::{FoundPage, list_pages};
use store::pages::{PageUpsert, UpsertOutcome};
use uuid::Uuid;
use web::{Code, Problem};

use super::build::BuiltSite;
use super::unpack::BuiltPage;
use crate::App;
use crate::call::Call;

/// Bytes of pages that are written in one statement.
const BATCH_BYTES: u64 = 2 << 20;

/// How a site differs from what its subdomain serves.
pub(super) struct SiteChanges {
    /// Pages with a slug of the site.
    pub(super) known: Vec<FoundPage>,
    /// The other pages of the subdomain, which stay published.
    pub(super) stale: Vec<FoundPage>,
    /// Files of the served deploy that the site lacks, and that the stale pages may reference.
    pub(super) taken_over: Vec<DeployFile>,
}

impl SiteChanges {
    /// Compares a site with the subdomain, whose choice of a deploy is locked. Returns 403 or 404 if the caller may not
    /// change or create one of the pages.
    pub(super) async fn find<S>(
        call: &Call<S>,
        tx: &mut Tx,
        subdomain_id: Uuid,
        served: Option<ServedDeploy>,
        site: &BuiltSite,
    ) -> Result<Self, Problem> {
        let account_id = call.account_id;
        let found = list_pages(tx, account_id, subdomain_id).await?;
        let slugs: BTreeSet<&str> = site.pages.iter().map(|page| page.slug.as_str()).collect();
        let (known, stale): (Vec<FoundPage>, Vec<FoundPage>) =
            found.into_iter().partition(|page| slugs.contains(page.slug.as_str()));
        if known.iter().any(|page| !site.slugs_before.contains(&page.slug)) {
            return Err(changed_meanwhile());
        }
        let paths = site.paths();
        check_restrictions(call, tx, site, &known, &moved(&stale, &paths)).await?;
        let mut taken_over = Vec::new();
        if let Some(ServedDeploy { deploy_id: previous, .. }) = served
            && !stale.is_empty()
        {
            taken_over = list_files(tx, account_id, previous).await?;
            let is_needed = |file: &DeployFile| {
                !paths.contains(file.path.as_str()) && left_out_by_name(&file.path).is_none()
            };
            taken_over.retain(is_needed);
        }
        Ok(Self { known, stale, taken_over })
    }
}

/// Returns the stale pages that lose their path to another page or file.
pub(super) fn moved<'a>(stale: &'a [FoundPage], paths: &BTreeSet<&str>) -> Vec<&'a FoundPage> {
    stale.iter().filter(|page| page.path.as_deref().is_some_and(|path| paths.contains(path))).collect()
}

/// The plan of the pages was made without a lock, and no longer fits.
pub(super) fn changed_meanwhile() -> Problem {
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

/// Returns the pages in the order of their slugs: other accounts may publish the same ones, of which the first gets the short
/// URL.
pub(super) fn in_order(site: &BuiltSite) -> Vec<&BuiltPage> {
    let mut pages: Vec<&BuiltPage> = site.pages.iter().collect();
    pages.sort_by(|a, b| a.slug.cmp(&b.slug));
    pages
}

/// Returns how many of the first pages are written in one statement, at least one.
pub(super) fn batch_len(pages: &[&BuiltPage]) -> usize {
    let mut bytes = 0;
    let fits = |page: &&&BuiltPage| {
        bytes += page.html.bytes;
        bytes <= BATCH_BYTES
    };
    pages.iter().take_while(fits).count().max(1)
}

/// Returns what a deploy writes of these pages.
pub(super) async fn upserts_of(
    app: &App,
    site: &BuiltSite,
    pages: &[&BuiltPage],
    subdomain_id: Uuid,
    deploy_id: Uuid,
    now: DateTime<Utc>,
) -> Result<Vec<PageUpsert>, Problem> {
    let mut upserts = Vec::with_capacity(pages.len());
    for page in pages {
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
    Ok(upserts)
}

/// Returns the id of a page, and what a deploy does to it.
pub(super) fn status_of(outcome: UpsertOutcome) -> (Uuid, &'static str) {
    match outcome {
        UpsertOutcome::Created(id) => (id, "created"),
        UpsertOutcome::Updated(id) => (id, "updated"),
        UpsertOutcome::Unchanged(id) => (id, "unchanged"),
    }
}

async fn read_document(site: &BuiltSite, page: &BuiltPage) -> Result<String, Problem> {
    let bytes = site.spool.read(page.html).await;
    bytes.and_then(|bytes| String::from_utf8(bytes).map_err(std::io::Error::other)).map_err(|error| {
        tracing::error!(%error, "failed to read a rewritten page from disk");
        Problem::nothing_changed()
    })
}
