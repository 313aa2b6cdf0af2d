//! The shortest way through the edge: a page that is known right now is answered at once.
//!
//! No waiting, no Postgres or Redis, and no memory but what the answer's headers need. Whatever isn't plainly such a
//! hit gets `None` here and goes the long way, which decides everything anew. The rule stands here once; those who
//! ask it are the quick lane (`quick`) and the door behind hyper. The lane also waits for pages that have to be asked
//! about again, as otherwise all its connections would leave it for one page that is a minute old.

use std::time::Instant;

use http::{HeaderMap, Method, Uri};

use crate::sites::classify_host::HostKind;
use crate::sites::classify_host::SiteHost;
use crate::sites::connection_cache::Memory;
use crate::sites::files::assets;
use crate::sites::page_response::{CacheStatus, PageResponse, Reply, request_id};
use crate::sites::pages::rendered_page::Rendered;
use crate::sites::site_handler::Found;
use crate::sites::{classify_host, site_handler};
use crate::state::EdgeState;

/// What a GET or HEAD asks for.
pub(crate) struct PageRequest<'a> {
    /// What stands for the host, as it was written.
    pub(crate) host: &'a str,
    pub(crate) path: &'a str,
    /// What stands behind the path's `?`.
    pub(crate) query: &'a str,
    /// GET: who asks will see the page.
    pub(crate) is_get: bool,
}

impl<'a> PageRequest<'a> {
    /// As hyper has read it; `None` for other methods, and where nobody can say for which host it is.
    pub(crate) fn read(method: &Method, uri: &'a Uri, asked: &'a HeaderMap) -> Option<Self> {
        let is_get = *method == Method::GET;
        if !is_get && *method != Method::HEAD {
            return None;
        }
        let host = classify_host::written(asked, uri)?;
        Some(Self { host, path: uri.path(), query: uri.query().unwrap_or_default(), is_get })
    }
}

/// A page to be sent.
pub(crate) struct CachedPage {
    pub(crate) page: Rendered,
    /// Whether its site belongs to somebody.
    pub(crate) claimed: bool,
    pub(crate) from: CacheStatus,
}

/// The page, if it can be sent right now; it is counted. `memory` is the connection's.
pub(crate) fn find(
    edge: &EdgeState,
    memory: &mut Memory,
    wanted: &PageRequest<'_>,
    now: Instant,
) -> Option<CachedPage> {
    let slug = slug(wanted.path)?;
    let (written, known) = (wanted.host, &mut memory.site);
    if !known.as_ref().is_some_and(|known| *known.host == *written && edge.sites.is_current(known, now)) {
        let HostKind::Site(host) =
            classify_host::classify_host(&edge.addresses, classify_host::plain(written)?)
        else {
            return None;
        };
        *known = edge.sites.peek(host, written, now);
    }
    let site = &known.as_ref()?.site;
    if site.suspended || site.moved_to.is_some() {
        return None;
    }
    let page = edge.pages.peek(site.subdomain_id, slug, now)??;
    edge.count(CacheStatus::Memory);
    if wanted.is_get {
        edge.views.count(page.views());
    }
    Some(CachedPage { page, claimed: site.claimed, from: CacheStatus::Memory })
}

/// The page, asked about anew or waited for if it isn't known right now. `None` for all that isn't simply sent.
pub(crate) async fn ask(edge: &EdgeState, wanted: &PageRequest<'_>) -> Option<CachedPage> {
    let slug = domain::pages::slug_at(wanted.path).filter(|_| wanted.path != "/index")?;
    let HostKind::Site(host) =
        classify_host::classify_host(&edge.addresses, classify_host::plain(wanted.host)?)
    else {
        return None;
    };
    if host == SiteHost::Subdomain(assets::NAME) {
        return None;
    }
    let Found { site, page } = site_handler::find(edge, host, slug).await.ok()?;
    if site.moved_to.is_some() {
        return None;
    }
    if wanted.is_get {
        edge.views.count(page.value.views());
    }
    Some(CachedPage { claimed: site.claimed, from: edge.record_cache_status(&page), page: page.value })
}

/// The slug at a path, if it could be one.
fn slug(path: &str) -> Option<&str> {
    match path {
        "/" => Some(domain::pages::INDEX),
        // Its address is `/`.
        "/index" => None,
        path => path.strip_prefix('/'),
    }
}

/// The answer to a request that hyper has read, if it can be given right now.
pub(crate) fn answer(
    edge: &EdgeState,
    memory: &mut Memory,
    wanted: &PageRequest<'_>,
    asked: &HeaderMap,
) -> Option<Reply> {
    let CachedPage { page, claimed, from } = find(edge, memory, wanted, Instant::now())?;
    let request_id = request_id(asked, &edge.rng);
    Some(PageResponse { asked, claimed, from, request_id }.page(&page))
}
