//! What stands at an address of a site: one after the other, in the order in which they may answer.
//!
//! The page of that slug; a file of the site; the way to a page that is written differently here; what every site
//! has (`robots.txt`, `sitemap.xml`); and the site's page for what isn't there.

use std::borrow::Cow;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use cache::Served;
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use store::subdomains::Site;

use crate::proxy;
use crate::read_pool::ReadError;
use crate::sites::classify_host::SiteHost;
use crate::sites::files::site_files;
use crate::sites::page_response::{PageResponse, request_id};
use crate::sites::pages::rendered_page::Rendered;
use crate::sites::pages::tracker;
use crate::sites::sitemaps;
use crate::state::EdgeState;

/// How long somebody is asked to wait who wants what can't be looked up.
const RETRY_AFTER_SECONDS: u16 = 2;
/// The slug of a site's page for what isn't there.
const NOT_FOUND: &str = "404";

/// A page of a site, found.
pub(crate) struct Found {
    pub(crate) site: Arc<Site>,
    pub(crate) page: Served<Rendered>,
}

/// Answers a request on a site's own host, on one it had, or on its custom domain.
pub(crate) async fn serve(edge: &EdgeState, host: SiteHost<'_>, request: Request) -> Response {
    let id = request_id(request.headers(), &edge.rng);
    let mut response = match request.uri().path() {
        tracker::SCRIPT_PATH | tracker::FORMER_PATH | tracker::COLLECT_PATH => {
            collect(edge, host, request).await
        }
        _ => read(edge, host, &request.into_parts().0).await,
    }
    .unwrap_or_else(|instead| instead);
    let headers = response.headers_mut();
    headers.entry(contract::edge::REQUEST_ID).or_insert(id);
    headers.entry(header::X_CONTENT_TYPE_OPTIONS).or_insert(HeaderValue::from_static("nosniff"));
    response
}

/// The tracker and what it sends belong to the collector; the cookies of a site are nobody's business there.
async fn collect(edge: &EdgeState, host: SiteHost<'_>, mut request: Request) -> Result<Response, Response> {
    find_site(edge, host).await?;
    request.headers_mut().remove(header::COOKIE);
    Ok(proxy::to_collector(State(edge.clone()), request).await)
}

async fn read(edge: &EdgeState, host: SiteHost<'_>, asked: &Parts) -> Result<Response, Response> {
    if !matches!(asked.method, Method::GET | Method::HEAD) {
        return Err((StatusCode::METHOD_NOT_ALLOWED, [(header::ALLOW, "GET, HEAD")]).into_response());
    }
    let site = find_site(edge, host).await?;
    if let (SiteHost::Subdomain(_), Some(name)) = (host, &site.value.moved_to) {
        let path = asked.uri.path_and_query().map_or("/", PathAndQuery::as_str);
        return Err(send_on(&format!("{}{path}", edge.addresses.site(name))));
    }
    let path = unescaped(asked.uri.path()).ok_or_else(nothing)?;
    if let Some(slug) = domain::pages::slug_at(&path).filter(|_| path != "/index")
        && let Some(page) = find_page(edge, &site, slug).await?
    {
        return Ok(answer(edge, &asked.method, &asked.headers, &Found { site: site.value, page }));
    }
    // A file that the site has at this very address stands before anything that is only like it.
    if let Some(file) = site_files::serve(edge, &site.value, asked).await {
        return Ok(file);
    }
    if let Some(slug) = domain::pages::canonical_slug(&path)
        && find_page(edge, &site, slug).await?.is_some()
    {
        return Err(point_to(slug, asked.uri.query()));
    }
    match &*path {
        "/robots.txt" => return Ok(sitemaps::robots(edge, host, site.value.claimed)),
        "/sitemap.xml" => {
            return sitemaps::show(edge, host, site.value.subdomain_id).await.map_err(cannot_say);
        }
        _ => {}
    }
    let page = find_page(edge, &site, NOT_FOUND).await?.ok_or_else(nothing)?;
    let (claimed, from) = (site.value.claimed, edge.record_cache_status(&page));
    let sending = PageResponse {
        asked: &asked.headers,
        claimed,
        from,
        request_id: request_id(&asked.headers, &edge.rng),
    };
    Err(sending.not_found(&page.value).map(Body::new))
}

/// The path with its escapes read, as some clients escape more than they must; only an escaped `/` is no `/`
/// (RFC 3986, 2.2), and nothing of ours has one.
fn unescaped(path: &str) -> Option<Cow<'_, str>> {
    if !path.contains('%') {
        return Some(Cow::Borrowed(path));
    }
    let is_slash = |escape: &str| escape.get(..2).is_some_and(|digits| digits.eq_ignore_ascii_case("2f"));
    if path.split('%').skip(1).any(is_slash) {
        return None;
    }
    percent_encoding::percent_decode_str(path).decode_utf8().ok()
}

/// On to where a site is now. Nobody may remember it: the name may one day be somebody else's.
fn send_on(address: &str) -> Response {
    let Ok(location) = HeaderValue::from_str(address) else { return nothing() };
    let headers =
        [(header::LOCATION, location), (header::CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    (StatusCode::FOUND, headers, "This site has another name now.\n").into_response()
}

/// To the one address of a page. For good, as far as search engines go; but a file may be put here tomorrow, so
/// browsers ask again.
fn point_to(slug: &str, query: Option<&str>) -> Response {
    let query = query.map(|query| format!("?{query}")).unwrap_or_default();
    let Ok(location) = HeaderValue::from_str(&format!("{}{query}", domain::pages::path_of(slug))) else {
        return nothing();
    };
    let headers =
        [(header::LOCATION, location), (header::CACHE_CONTROL, HeaderValue::from_static("no-cache"))];
    (StatusCode::PERMANENT_REDIRECT, headers).into_response()
}

/// The page at a slug of the site at this host, or of the one that had it.
///
/// # Errors
/// The answer to give instead.
pub(crate) async fn find(edge: &EdgeState, host: SiteHost<'_>, slug: &str) -> Result<Found, Response> {
    let site = find_site(edge, host).await?;
    let page = find_page(edge, &site, slug).await?.ok_or_else(nothing)?;
    Ok(Found { site: site.value, page })
}

async fn find_site(edge: &EdgeState, host: SiteHost<'_>) -> Result<Served<Arc<Site>>, Response> {
    let Served { value, stale, hit } = edge.sites.find(host, edge.clock.now()).await.map_err(cannot_say)?;
    let site = value.ok_or_else(nothing)?;
    if site.suspended {
        return Err(refuse(StatusCode::UNAVAILABLE_FOR_LEGAL_REASONS, "This site is suspended.\n"));
    }
    Ok(Served { value: site, stale, hit })
}

async fn find_page(
    edge: &EdgeState,
    site: &Served<Arc<Site>>,
    slug: &str,
) -> Result<Option<Served<Rendered>>, Response> {
    let Served { value, stale, hit } =
        edge.pages.find(site.value.subdomain_id, slug).await.map_err(cannot_say)?;
    Ok(value.map(|value| Served { value, stale: stale || site.stale, hit }))
}

/// The whole page, or 304 if the visitor has it.
pub(crate) fn answer(edge: &EdgeState, method: &Method, asked: &HeaderMap, found: &Found) -> Response {
    let Found { site, page } = found;
    if *method == Method::GET {
        edge.views.count(page.value.views());
    }
    let (claimed, from) = (site.claimed, edge.record_cache_status(page));
    let request_id = request_id(asked, &edge.rng);
    PageResponse { asked, claimed, from, request_id }.page(&page.value).map(Body::new)
}

/// There is nothing at this address.
pub(crate) fn nothing() -> Response {
    refuse(StatusCode::NOT_FOUND, "There is no page at this address.\n")
}

/// Whether there is something at this address can't be found out now.
pub(crate) fn cannot_say(error: ReadError) -> Response {
    match error {
        // Told by whoever waited for it; the others would only repeat it.
        ReadError::Unavailable => tracing::debug!("a page that isn't kept can't be looked up"),
        ReadError::Database(error) => tracing::warn!(%error, "a page that isn't kept can't be looked up"),
    }
    let text = "This page can't be shown right now; try again shortly.\n";
    let mut response = refuse(StatusCode::SERVICE_UNAVAILABLE, text);
    response.headers_mut().insert(header::RETRY_AFTER, RETRY_AFTER_SECONDS.into());
    response
}

/// No page, in a sentence that nobody between us and the visitor may keep.
pub(crate) fn refuse(status: StatusCode, text: &'static str) -> Response {
    (status, [(header::CACHE_CONTROL, "no-store")], text).into_response()
}
