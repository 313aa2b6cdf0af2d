//! Requests on a site's host that are not answered from the caches.
//!
//! Addresses of the platform come first, then what the site itself answers by its files, pages and rules
//! (`domain::static_sites::resolution`), then the generated `robots.txt` or `sitemap.xml`, and the site's not-found page.

use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use cache::Served;
use domain::static_sites::site_path::{RequestPath, is_reserved};
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderValue, Method, StatusCode, header};
use store::subdomains::Site;

use super::answers::address_headers::AddressHeaders;
use super::classify_host::SiteHost;
use super::error_responses::{lookup_failed, method_not_allowed, not_found};
use super::files::found_file::FoundFile;
use super::files::site_file::SiteFile;
use super::files::site_files;
use super::header_templates::NOINDEX;
use super::page_lookup::{Found, FoundAnswer, find_answer, find_site, record_miss, respond};
use super::page_response::FoundPage;
use super::pages::encodings::Accepted;
use super::pages::tracker;
use super::sitemaps;
use crate::proxy;
use crate::request_id::request_id;
use crate::state::EdgeState;
use crate::unread_body;

/// The address of a site's not-found page.
const NOT_FOUND_ADDRESS: &str = "/404";

/// Answers a request on a subdomain, a former name of one, a preview, or a custom domain.
pub(crate) async fn serve(state: &EdgeState, host: SiteHost<'_>, request: Request) -> Response {
    let id = request_id(request.headers(), &state.rng);
    let mut response = match request.uri().path() {
        tracker::SCRIPT_PATH | tracker::FORMER_PATH | tracker::COLLECT_PATH => {
            collect(state, host, request).await
        }
        _ => {
            let (parts, body) = request.into_parts();
            let response = read(state, host, &parts).await;
            if response.as_ref().is_err_and(|instead| instead.status() == StatusCode::PERMANENT_REDIRECT) {
                unread_body::discard(&parts.headers, body).await;
            }
            response
        }
    }
    .unwrap_or_else(|instead| instead);
    let is_not_modified = response.status() == StatusCode::NOT_MODIFIED;
    let headers = response.headers_mut();
    headers.entry(contract::edge::REQUEST_ID).or_insert(id);
    if !is_not_modified {
        headers.entry(header::X_CONTENT_TYPE_OPTIONS).or_insert(HeaderValue::from_static("nosniff"));
    }
    if matches!(host, SiteHost::Preview(_)) {
        headers.entry("x-robots-tag").or_insert(HeaderValue::from_static(NOINDEX));
    }
    response
}

/// Passes requests for the tracker and its events to the collector, without the site's cookies. A preview has no tracker.
async fn collect(state: &EdgeState, host: SiteHost<'_>, mut request: Request) -> Result<Response, Response> {
    let site = find_site(state, host).await?.value;
    if site.is_preview {
        return Err(not_found());
    }
    request.headers_mut().remove(header::COOKIE);
    Ok(proxy::to_collector(State(state.clone()), request).await)
}

async fn read(state: &EdgeState, host: SiteHost<'_>, request: &Parts) -> Result<Response, Response> {
    // All methods: 308 keeps the method and the body.
    if matches!(host, SiteHost::Custom(_))
        && let Some(domain) = &find_site(state, host).await?.value.moved_to
    {
        let path = request.uri.path_and_query().map_or("/", PathAndQuery::as_str);
        return Err(redirect_to_domain(&format!("{}{path}", state.addresses.at(domain))));
    }
    if !matches!(request.method, Method::GET | Method::HEAD) {
        return Err(method_not_allowed());
    }
    let path = RequestPath::parse(request.uri.path());
    if path.as_ref().is_some_and(|path| is_reserved(path.path())) {
        return Err(not_found());
    }
    let began = Instant::now();
    let site = find_site(state, host).await?;
    if let (SiteHost::Subdomain(_), Some(name)) = (host, &site.value.moved_to) {
        let path = request.uri.path_and_query().map_or("/", PathAndQuery::as_str);
        return Err(redirect_to_site(&format!("{}{path}", state.addresses.site(name))));
    }
    let Some(path) = path else { return Err(own_not_found(state, &site, request).await?) };
    let is_get = request.method == Method::GET;
    match find_answer(state, &site, &path, request.uri.query().unwrap_or_default()).await? {
        FoundAnswer::Page(page, 404) => Ok(not_found_with(state, &page, request)),
        FoundAnswer::Page(page, _) => {
            record_miss(page.cache_status, began);
            Ok(respond(state, &Found::from(page), is_get, &request.headers).map(Body::new))
        }
        FoundAnswer::File(file, 200, headers) => Ok(with_file(state, file, headers, request).await),
        FoundAnswer::File(file, _, headers) => {
            Ok(site_files::respond_not_found(&state.file_bodies, &file, headers.as_deref(), request).await)
        }
        FoundAnswer::Redirect(location, status) => Ok(redirect_on_site(&location, status)),
        FoundAnswer::NotFound => generated(state, host, &site, &path, request).await,
    }
}

/// Returns the response with a file: from memory, if it is not too large and no range of it is requested.
async fn with_file(
    state: &EdgeState,
    file: Arc<SiteFile>,
    headers: Option<Arc<AddressHeaders>>,
    request: &Parts,
) -> Response {
    let is_get = request.method == Method::GET;
    let has_range = is_get && request.headers.contains_key(header::RANGE);
    let body = match has_range {
        true => None,
        false => state.file_bodies.find(&file, Accepted::from_headers(&request.headers)).await,
    };
    let Some(body) = body else {
        return site_files::respond(&state.file_bodies, &file, headers.as_deref(), request).await;
    };
    let found = Found::from(FoundFile { file, headers, body });
    respond(state, &found, is_get, &request.headers).map(Body::new)
}

/// Answers with what is generated for a site without a file or page at the path.
async fn generated(
    state: &EdgeState,
    host: SiteHost<'_>,
    site: &Served<Arc<Site>>,
    path: &RequestPath,
    request: &Parts,
) -> Result<Response, Response> {
    match path.path() {
        "robots.txt" => Ok(sitemaps::robots(&state.addresses, host, site.value.claimed)),
        "sitemap.xml" if !site.value.is_preview => {
            let sitemap = state.sitemaps.respond(&state.addresses, host, site.value.subdomain_id);
            sitemap.await.map_err(lookup_failed)
        }
        _ => own_not_found(state, site, request).await,
    }
}

/// Answers with the site's own not-found page.
async fn own_not_found(
    state: &EdgeState,
    site: &Served<Arc<Site>>,
    request: &Parts,
) -> Result<Response, Response> {
    let path = RequestPath::parse(NOT_FOUND_ADDRESS).ok_or_else(not_found)?;
    match find_answer(state, site, &path, "").await? {
        FoundAnswer::Page(page, _) => Ok(not_found_with(state, &page, request)),
        _ => Err(not_found()),
    }
}

fn not_found_with(state: &EdgeState, page: &FoundPage, request: &Parts) -> Response {
    let id = request_id(&request.headers, &state.rng);
    state.page_responder.not_found(page, &request.headers, id).map(Body::new)
}

/// Redirects to the current name of a site. It must not be cached: another site may take over the former name.
fn redirect_to_site(url: &str) -> Response {
    let Ok(location) = HeaderValue::from_str(url) else { return not_found() };
    let headers =
        [(header::LOCATION, location), (header::CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    (StatusCode::FOUND, headers, "This site has another name now.\n").into_response()
}

/// Redirects to another domain of the owner. Browsers revalidate it, because the owner may end the redirect.
fn redirect_to_domain(url: &str) -> Response {
    let Ok(location) = HeaderValue::from_str(url) else { return not_found() };
    let headers =
        [(header::LOCATION, location), (header::CACHE_CONTROL, HeaderValue::from_static("no-cache"))];
    (StatusCode::PERMANENT_REDIRECT, headers).into_response()
}

/// Redirects as the site says. Browsers revalidate even permanent redirects, because a later deploy may have a file there.
fn redirect_on_site(location: &str, status: u16) -> Response {
    let (Ok(location), Ok(status)) = (HeaderValue::from_str(location), StatusCode::from_u16(status)) else {
        return not_found();
    };
    let headers =
        [(header::LOCATION, location), (header::CACHE_CONTROL, HeaderValue::from_static("no-cache"))];
    (status, headers).into_response()
}
