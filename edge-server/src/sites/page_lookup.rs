//! Looks up what a request answers.
//!
//! [`find_cached`] is the shortest path: it neither waits nor queries Postgres or Redis. It returns `None` for every request
//! that is not a plain cache hit; the caller then takes the long path, which decides everything anew. The fast path and
//! the hyper service share these functions. The fast path also waits for pages that have expired ([`find`]), because one
//! page a minute old would otherwise push all its connections to hyper.

use std::sync::Arc;
use std::time::Instant;

use axum::response::Response;
use cache::Served;
use domain::static_sites::site_path::{RequestPath, is_reserved};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use store::subdomains::Site;

use super::answers::address_headers::AddressHeaders;
use super::answers::answer::{Answer, Resolved};
use super::cache_status::CacheStatus;
use super::cached_response::{CachedResponse, WholeResponse};
use super::classify_host::{HostKind, SiteHost, classify_host, normalized_host};
use super::connection_cache::ConnectionCache;
use super::error_responses::{lookup_failed, not_found, plain_error};
use super::files::assets;
use super::files::found_file::FoundFile;
use super::files::site_file::SiteFile;
use super::page_response::FoundPage;
use super::pages::encodings::Accepted;
use super::sitemaps;
use crate::etag;
use crate::metrics::{self, HostLabel};
use crate::page_request::PageRequest;
use crate::request_id::request_id;
use crate::state::EdgeState;

/// A page or file that was found for a request, with its body in memory. Its status is 200.
pub(crate) struct Found {
    content: FoundContent,
    /// The value of `Strict-Transport-Security`, if the request came over https.
    hsts: Option<Arc<str>>,
}

enum FoundContent {
    Page(FoundPage),
    File(FoundFile),
}

impl From<FoundPage> for Found {
    fn from(page: FoundPage) -> Self {
        Self { content: FoundContent::Page(page), hsts: None }
    }
}

impl From<FoundFile> for Found {
    fn from(file: FoundFile) -> Self {
        Self { content: FoundContent::File(file), hsts: None }
    }
}

impl Found {
    /// Adds the policy of the site for requests over https.
    fn for_request(mut self, site: &Site, request: &PageRequest<'_>) -> Self {
        if request.is_secure {
            self.hsts.clone_from(&site.hsts);
        }
        self
    }

    /// Returns the response, or a 304 if the client has a body with an ETag that `is_known`. Counts a view of a page if the
    /// request is a GET.
    pub(crate) fn respond(
        &self,
        state: &EdgeState,
        is_get: bool,
        accepted: Accepted,
        is_known: impl Fn(&HeaderValue) -> bool,
    ) -> CachedResponse<'_> {
        let response = match &self.content {
            FoundContent::Page(page) => state.page_responder.respond(page, is_get, accepted, is_known),
            FoundContent::File(file) => file.respond(is_known),
        };
        CachedResponse { hsts: self.hsts.as_deref(), ..response }
    }
}

/// Returns the page or file for a request if it is cached, and the kind of its host. `cache` belongs to the request's
/// connection.
pub(crate) fn find_cached(
    state: &EdgeState,
    cache: &mut ConnectionCache,
    request: &PageRequest<'_>,
    accepted: Accepted,
    now: Instant,
) -> Option<(Found, HostLabel)> {
    let (raw_host, cached) = (request.host, &mut cache.site);
    let is_current = |site: &_| state.sites.is_current(site, now);
    if !cached.as_ref().is_some_and(|site| *site.host == *raw_host && is_current(site)) {
        *cached = state.sites.peek(site_host(state, raw_host)?, raw_host, now);
    }
    let cached = cached.as_ref()?;
    let (site, host) = (&cached.site, cached.host_label);
    if site.suspended || site.moved_to.is_some() {
        return None;
    }
    let cached = state.answers.peek(site, request.path, now)?;
    let (is_claimed, headers) = (site.claimed, cached.headers);
    let found: Found = match cached.answer {
        Answer::Page(page) => FoundPage { page, is_claimed, headers, cache_status: CacheStatus::Hit }.into(),
        Answer::File(file) if cached.status == 200 => {
            let body = state.file_bodies.peek(&file, accepted, now)?;
            FoundFile { file, headers, body }.into()
        }
        _ => return None,
    };
    Some((found.for_request(site, request), host))
}

/// Returns the page or file for a request and the kind of its host, loading it if necessary. `None` if the response is
/// anything but a page with the status 200, or a file with that status that is kept in memory.
pub(crate) async fn find(
    state: &EdgeState,
    request: &PageRequest<'_>,
    accepted: Accepted,
) -> Option<(Found, HostLabel)> {
    let began = Instant::now();
    let path = RequestPath::parse(request.path).filter(|path| !is_reserved(path.path()))?;
    let host = site_host(state, request.host)?;
    if host == SiteHost::Subdomain(assets::NAME) {
        return None;
    }
    let site = find_site(state, host).await.ok()?;
    if site.value.moved_to.is_some() {
        return None;
    }
    let found: Found = match find_answer(state, &site, &path, request.query).await.ok()? {
        FoundAnswer::Page(page, 200) => {
            record_miss(page.cache_status, began);
            page.into()
        }
        FoundAnswer::File(file, 200, headers) => {
            let body = state.file_bodies.find_small(&file, accepted).await?;
            FoundFile { file, headers, body }.into()
        }
        _ => return None,
    };
    Some((found.for_request(&site.value, request), host.label()))
}

/// Returns the response to a request that hyper has parsed, if its page or file is cached.
pub(crate) fn answer_cached(
    state: &EdgeState,
    cache: &mut ConnectionCache,
    request: &PageRequest<'_>,
    headers: &HeaderMap,
) -> Option<(WholeResponse, HostLabel)> {
    if headers.contains_key(header::RANGE) {
        return None;
    }
    let (found, host) = find_cached(state, cache, request, Accepted::from_headers(headers), Instant::now())?;
    Some((respond(state, &found, request.is_get, headers), host))
}

/// Records how long a page took whose lookup `began` then, if it was not in memory.
pub(super) fn record_miss(status: CacheStatus, began: Instant) {
    if status == CacheStatus::Miss {
        metrics::PAGE_MISS_SECONDS.record(began.elapsed(), &[]);
    }
}

/// Returns the response with a found page or file, or a 304.
pub(super) fn respond(state: &EdgeState, found: &Found, is_get: bool, headers: &HeaderMap) -> WholeResponse {
    let is_known = |etag: &HeaderValue| etag::is_listed(headers, etag);
    let response = found.respond(state, is_get, Accepted::from_headers(headers), is_known);
    response.into_response(request_id(headers, &state.rng))
}

/// Returns the page with a slug of the site at a host, at whichever address the site shows it, and without headers that
/// the site sets. The error is the response to send instead.
pub(super) async fn find_page_of_host(
    state: &EdgeState,
    host: SiteHost<'_>,
    slug: &str,
) -> Result<(Arc<Site>, FoundPage), Response> {
    let site = find_site(state, host).await?;
    let Served { value, stale, hit } =
        state.answers.page_with_slug(&site.value, slug).await.map_err(lookup_failed)?;
    let page = value.ok_or_else(not_found)?;
    let cache_status = status_of(&site, stale, hit);
    let is_claimed = site.value.claimed;
    Ok((site.value, FoundPage { page, is_claimed, headers: None, cache_status }))
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

/// What an address of a site answers.
pub(super) enum FoundAnswer {
    /// A page, with the status 200 or 404.
    Page(FoundPage, u16),
    /// A file, with the status 200 or 404 and the headers that the site sets.
    File(Arc<SiteFile>, u16, Option<Arc<AddressHeaders>>),
    /// A redirect to this `Location`.
    Redirect(Arc<str>, u16),
    /// Only what is generated for every site.
    NotFound,
}

/// Returns what a request answers. A page is stale if the site is. The error is the response to send instead.
pub(super) async fn find_answer(
    state: &EdgeState,
    site: &Served<Arc<Site>>,
    request: &RequestPath,
    query: &str,
) -> Result<FoundAnswer, Response> {
    let Served { value, stale, hit } =
        state.answers.find(&site.value, request, query).await.map_err(lookup_failed)?;
    let Resolved { answer, status, headers, is_elsewhere } = value;
    Ok(match answer {
        // A fallback for visitors is no `robots.txt`.
        Answer::Page(_) if is_elsewhere && sitemaps::is_generated(request.path()) => FoundAnswer::NotFound,
        Answer::Page(page) => {
            let cache_status = status_of(site, stale, hit);
            let is_claimed = site.value.claimed;
            FoundAnswer::Page(FoundPage { page, is_claimed, headers, cache_status }, status)
        }
        Answer::File(file) => FoundAnswer::File(file, status, headers),
        Answer::Redirect(location) => FoundAnswer::Redirect(location, status),
        Answer::Alias(_) | Answer::ByQuery | Answer::NotFound => FoundAnswer::NotFound,
    })
}

fn status_of(site: &Served<Arc<Site>>, stale: bool, hit: bool) -> CacheStatus {
    CacheStatus::of(&Served { value: (), stale: stale || site.stale, hit })
}

fn site_host<'a>(state: &EdgeState, raw_host: &'a str) -> Option<SiteHost<'a>> {
    match classify_host(&state.addresses, normalized_host(raw_host)?) {
        HostKind::Site(host) => Some(host),
        HostKind::Base | HostKind::Unknown => None,
    }
}
