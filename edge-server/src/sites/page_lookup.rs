//! Looks up the page for a request.
//!
//! [`find_cached`] is the shortest path: it neither waits nor queries Postgres or Redis. It returns `None` for every request
//! that is not a plain cache hit; the caller then takes the long path, which decides everything anew. The fast path and
//! the hyper service share these functions. The fast path also waits for pages that have expired ([`find`]), because one
//! page a minute old would otherwise push all its connections to hyper.

use std::sync::Arc;
use std::time::Instant;

use axum::response::Response;
use cache::Served;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use store::subdomains::Site;

use super::cache_status::CacheStatus;
use super::classify_host::{HostKind, SiteHost, classify_host, normalized_host};
use super::connection_cache::ConnectionCache;
use super::error_responses::{lookup_failed, not_found, plain_error};
use super::files::assets;
use super::page_response::{FoundPage, WholeResponse};
use super::pages::encodings::Accepted;
use crate::page_request::PageRequest;
use crate::request_id::request_id;
use crate::state::EdgeState;

/// Returns the page for a request if it is cached. `cache` belongs to the request's connection.
pub(crate) fn find_cached(
    state: &EdgeState,
    cache: &mut ConnectionCache,
    request: &PageRequest<'_>,
    now: Instant,
) -> Option<FoundPage> {
    let slug = match request.path {
        "/" => domain::pages::INDEX,
        // The index page's path is `/`.
        "/index" => return None,
        path => path.strip_prefix('/')?,
    };
    let (raw_host, cached) = (request.host, &mut cache.site);
    let is_current = |site: &_| state.sites.is_current(site, now);
    if !cached.as_ref().is_some_and(|site| *site.host == *raw_host && is_current(site)) {
        *cached = state.sites.peek(site_host(state, raw_host)?, raw_host, now);
    }
    let site = &cached.as_ref()?.site;
    if site.suspended || site.moved_to.is_some() {
        return None;
    }
    let page = state.pages.peek(site.subdomain_id, slug, now)??;
    Some(FoundPage { page, is_claimed: site.claimed, cache_status: CacheStatus::Hit })
}

/// Returns the page for a request, loading it if necessary. `None` if the response is anything but a page.
pub(crate) async fn find(state: &EdgeState, request: &PageRequest<'_>) -> Option<FoundPage> {
    let slug = domain::pages::slug_at(request.path).filter(|_| request.path != "/index")?;
    let host = site_host(state, request.host)?;
    if host == SiteHost::Subdomain(assets::NAME) {
        return None;
    }
    let (site, page) = find_page_of_host(state, host, slug).await.ok()?;
    if site.moved_to.is_some() { None } else { Some(page) }
}

/// Returns the response to a request that hyper has parsed, if its page is cached.
pub(crate) fn answer_cached(
    state: &EdgeState,
    cache: &mut ConnectionCache,
    request: &PageRequest<'_>,
    headers: &HeaderMap,
) -> Option<WholeResponse> {
    let found = find_cached(state, cache, request, Instant::now())?;
    Some(respond(state, &found, request.is_get, headers))
}

/// Returns the response with a found page, or a 304.
pub(super) fn respond(
    state: &EdgeState,
    found: &FoundPage,
    is_get: bool,
    headers: &HeaderMap,
) -> WholeResponse {
    let etags = headers.get_all(header::IF_NONE_MATCH).iter().map(HeaderValue::as_bytes);
    let response = state.page_responder.respond(found, is_get, Accepted::from_headers(headers), etags);
    response.into_response(request_id(headers, &state.rng))
}

/// Returns the page with a slug of the site at a host. The error is the response to send instead.
pub(super) async fn find_page_of_host(
    state: &EdgeState,
    host: SiteHost<'_>,
    slug: &str,
) -> Result<(Arc<Site>, FoundPage), Response> {
    let site = find_site(state, host).await?;
    let page = find_page(state, &site, slug).await?.ok_or_else(not_found)?;
    Ok((site.value, page))
}

/// Returns the site at a host. The error is the response to send instead.
pub(super) async fn find_site(state: &EdgeState, host: SiteHost<'_>) -> Result<Served<Arc<Site>>, Response> {
    let Served { value, stale, hit } =
        state.sites.find(host, state.clock.now()).await.map_err(lookup_failed)?;
    let site = value.ok_or_else(not_found)?;
    if site.suspended {
        return Err(plain_error(StatusCode::UNAVAILABLE_FOR_LEGAL_REASONS, "This site is suspended.\n"));
    }
    Ok(Served { value: site, stale, hit })
}

/// Returns the page with a slug. It is stale if the site is.
pub(super) async fn find_page(
    state: &EdgeState,
    site: &Served<Arc<Site>>,
    slug: &str,
) -> Result<Option<FoundPage>, Response> {
    let Served { value, stale, hit } =
        state.pages.find(site.value.subdomain_id, slug).await.map_err(lookup_failed)?;
    let is_stale = stale || site.stale;
    Ok(value.map(|page| FoundPage {
        page,
        is_claimed: site.value.claimed,
        cache_status: CacheStatus::of(&Served { value: (), stale: is_stale, hit }),
    }))
}

fn site_host<'a>(state: &EdgeState, raw_host: &'a str) -> Option<SiteHost<'a>> {
    match classify_host(&state.addresses, normalized_host(raw_host)?) {
        HostKind::Site(host) => Some(host),
        HostKind::Base | HostKind::Unknown => None,
    }
}
