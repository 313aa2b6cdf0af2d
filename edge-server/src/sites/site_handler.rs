//! Requests on a site's host that are not answered from the caches.
//!
//! The first of these that exists is the response: the page with the slug, a file of the site, a redirect to a page with another
//! canonical path, the generated `robots.txt` or `sitemap.xml`, and the site's not-found page.

use std::borrow::Cow;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use domain::addresses::is_reserved_path;
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderValue, Method, StatusCode, header};

use super::classify_host::SiteHost;
use super::error_responses::{lookup_failed, method_not_allowed, not_found};
use super::page_lookup::{find_page, find_site, respond};
use super::pages::tracker;
use super::sitemaps;
use crate::proxy;
use crate::request_id::request_id;
use crate::state::EdgeState;

/// The slug of a site's not-found page.
const NOT_FOUND_SLUG: &str = "404";

/// Answers a request on a subdomain, a former name of one, or a custom domain.
pub(crate) async fn serve(state: &EdgeState, host: SiteHost<'_>, request: Request) -> Response {
    let id = request_id(request.headers(), &state.rng);
    let mut response = match request.uri().path() {
        tracker::SCRIPT_PATH | tracker::FORMER_PATH | tracker::COLLECT_PATH => {
            collect(state, host, request).await
        }
        _ => read(state, host, &request.into_parts().0).await,
    }
    .unwrap_or_else(|instead| instead);
    let headers = response.headers_mut();
    headers.entry(contract::edge::REQUEST_ID).or_insert(id);
    headers.entry(header::X_CONTENT_TYPE_OPTIONS).or_insert(HeaderValue::from_static("nosniff"));
    response
}

/// Passes requests for the tracker and its events to the collector, without the site's cookies.
async fn collect(state: &EdgeState, host: SiteHost<'_>, mut request: Request) -> Result<Response, Response> {
    find_site(state, host).await?;
    request.headers_mut().remove(header::COOKIE);
    Ok(proxy::to_collector(State(state.clone()), request).await)
}

async fn read(state: &EdgeState, host: SiteHost<'_>, request: &Parts) -> Result<Response, Response> {
    if !matches!(request.method, Method::GET | Method::HEAD) {
        return Err(method_not_allowed());
    }
    let path = percent_decode(request.uri.path());
    if path.as_deref().is_some_and(is_reserved_path) {
        return Err(not_found());
    }
    let site = find_site(state, host).await?;
    if let (SiteHost::Subdomain(_), Some(name)) = (host, &site.value.moved_to) {
        let path = request.uri.path_and_query().map_or("/", PathAndQuery::as_str);
        return Err(redirect_to_site(&format!("{}{path}", state.addresses.site(name))));
    }
    let path = path.ok_or_else(not_found)?;
    if let Some(slug) = domain::pages::slug_at(&path).filter(|_| path != "/index")
        && let Some(page) = find_page(state, &site, slug).await?
    {
        return Ok(respond(state, &page, request.method == Method::GET, &request.headers).map(Body::new));
    }
    // A file at exactly this path takes precedence over a page at a similar one.
    if let Some(file) = state.files.respond(&state.file_bodies, &site.value, request).await {
        return Ok(file);
    }
    if let Some(slug) = domain::pages::canonical_slug(&path)
        && find_page(state, &site, slug).await?.is_some()
    {
        return Err(redirect_to_page(slug, request.uri.query()));
    }
    match &*path {
        "/robots.txt" => return Ok(sitemaps::robots(&state.addresses, host, site.value.claimed)),
        "/sitemap.xml" => {
            let sitemap = state.sitemaps.respond(&state.addresses, host, site.value.subdomain_id);
            return sitemap.await.map_err(lookup_failed);
        }
        _ => {}
    }
    let page = find_page(state, &site, NOT_FOUND_SLUG).await?.ok_or_else(not_found)?;
    let id = request_id(&request.headers, &state.rng);
    Err(state.page_responder.not_found(&page, &request.headers, id).map(Body::new))
}

/// Decodes a path, as some clients escape more than necessary. `None` for an escaped `/`, which is not the same as a `/`
/// (RFC 3986, 2.2) and appears in no path of a site.
fn percent_decode(path: &str) -> Option<Cow<'_, str>> {
    if !path.contains('%') {
        return Some(Cow::Borrowed(path));
    }
    let is_slash = |escape: &str| escape.get(..2).is_some_and(|digits| digits.eq_ignore_ascii_case("2f"));
    if path.split('%').skip(1).any(is_slash) {
        return None;
    }
    percent_encoding::percent_decode_str(path).decode_utf8().ok()
}

/// Redirects to the current name of a site. It must not be cached: another site may take over the former name.
fn redirect_to_site(url: &str) -> Response {
    let Ok(location) = HeaderValue::from_str(url) else { return not_found() };
    let headers =
        [(header::LOCATION, location), (header::CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    (StatusCode::FOUND, headers, "This site has another name now.\n").into_response()
}

/// Redirects to a page's canonical path: permanently for search engines, but browsers revalidate, because a file may be
/// deployed at this path later.
fn redirect_to_page(slug: &str, query: Option<&str>) -> Response {
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    let Ok(location) = HeaderValue::from_str(&format!("{}{query}", domain::pages::path_of(slug))) else {
        return not_found();
    };
    let headers =
        [(header::LOCATION, location), (header::CACHE_CONTROL, HeaderValue::from_static("no-cache"))];
    (StatusCode::PERMANENT_REDIRECT, headers).into_response()
}
