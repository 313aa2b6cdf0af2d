//! What visitors see of a site: rendered once, kept with its headers, served from memory.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Response};
use cache::{Fresh, Served};
use domain::{pages, rendering};
use http::request::Parts;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use sha2::{Digest, Sha256};
use store::subdomains::Site;
use uuid::Uuid;

use crate::config::{Cache, weight};
use crate::edge::Edge;
use crate::files;
use crate::lookups::{LookUps, NoAnswer};

/// Says where an answer came from: `hit`, `miss` or `stale` (Postgres is away and this is what we had).
const X_CACHE: &str = "x-cache";
/// How long somebody is asked to wait who wants what can't be looked up.
const RETRY_AFTER_SECONDS: u16 = 2;

/// A page as it is sent.
#[derive(Debug, Clone)]
pub(crate) struct Rendered(Arc<RenderedParts>);

#[derive(Debug)]
struct RenderedParts {
    body: Bytes,
    etag: HeaderValue,
}

impl Rendered {
    fn new(html: String) -> Self {
        let digest = Sha256::digest(html.as_bytes());
        let etag = format!("\"{}\"", hex::encode(&digest[..16]));
        // Hexadecimal digits in quotes are always a header value.
        let etag = HeaderValue::from_str(&etag).unwrap_or(HeaderValue::from_static("\"\""));
        Self(Arc::new(RenderedParts { body: html.into(), etag }))
    }
}

/// The pages kept so far, by site and slug; slugs without a page are kept too.
pub(crate) struct Pages {
    lookups: LookUps,
    kept: Fresh<(Uuid, String), Option<Rendered>>,
}

impl Pages {
    pub(crate) fn new(lookups: LookUps, config: &Cache) -> Self {
        let weigh = |key: &(Uuid, String), page: &Option<Rendered>| {
            weight(256 + key.1.len() + page.as_ref().map_or(0, |page| page.0.body.len()))
        };
        Self { lookups, kept: Fresh::new(config.bounds(config.page_bytes), weigh) }
    }

    /// The page of a site at a slug.
    ///
    /// # Errors
    /// It isn't kept and Postgres is away.
    pub(crate) async fn find(
        &self,
        subdomain_id: Uuid,
        slug: &str,
    ) -> Result<Served<Option<Rendered>>, NoAnswer> {
        let key = (subdomain_id, slug.to_owned());
        let look_up = async {
            let find =
                async |conn: &mut store::Conn| store::pages::find_document(conn, subdomain_id, slug).await;
            let document = self.lookups.ask(find).await?;
            Ok(document.map(|page| Rendered::new(rendering::page(page.source()))))
        };
        self.kept.get(&key, Instant::now(), look_up).await
    }

    /// Asks again before the page is served next.
    pub(crate) fn forget(&self, subdomain_id: Uuid, slug: String) {
        self.kept.invalidate(&(subdomain_id, slug));
    }

    /// Asks again about a site's pages.
    pub(crate) fn forget_site(&self, subdomain_id: Uuid) {
        self.kept.invalidate_where(|(site, _), _| *site == subdomain_id);
    }

    /// Lets go of a site's pages for good: they must not even be served stale.
    pub(crate) fn drop_site(&self, subdomain_id: Uuid) {
        self.kept.remove_where(|(site, _), _| *site == subdomain_id);
    }

    /// Asks again about every page.
    pub(crate) fn forget_all(&self) {
        self.kept.expire_all();
    }
}

/// A page of a site, found.
pub(crate) struct Found {
    /// The site.
    site: Site,
    /// Its page, and how both were come by.
    page: Served<Rendered>,
}

/// Answers a request on a site's own host, or on one it had.
pub(crate) async fn serve(edge: &Edge, subdomain: &str, asked: &Parts) -> Response {
    if !matches!(asked.method, Method::GET | Method::HEAD) {
        return (StatusCode::METHOD_NOT_ALLOWED, [(header::ALLOW, "GET, HEAD")]).into_response();
    }
    let site = match find_site(edge, subdomain).await {
        Ok(site) => site,
        Err(refusal) => return refusal,
    };
    if let Some(name) = &site.value.moved_to {
        let path = asked.uri.path_and_query().map_or("/", PathAndQuery::as_str);
        return send_on(&format!("{}{path}", edge.addresses.site(name)));
    }
    let shown = site.value.clone();
    let page = match slug_at(asked.uri.path()) {
        Some(slug) => find_page(edge, site, &slug).await,
        None => Err(nothing()),
    };
    match page {
        Ok(found) => answer(&asked.headers, &found),
        Err(refusal) if refusal.status() == StatusCode::NOT_FOUND => {
            files::serve(edge, &shown, asked).await.unwrap_or(refusal)
        }
        Err(refusal) => refusal,
    }
}

/// On to where a site is now. Nobody may remember it: the name may one day be somebody else's.
fn send_on(address: &str) -> Response {
    let Ok(location) = HeaderValue::from_str(address) else { return nothing() };
    let headers =
        [(header::LOCATION, location), (header::CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    (StatusCode::FOUND, headers, "This site has another name now.\n").into_response()
}

/// The slug that a path asks for. Escapes are read, as some clients escape more than they must; only an
/// escaped `/` is no `/` (RFC 3986, 2.2).
fn slug_at(path: &str) -> Option<Cow<'_, str>> {
    if !path.contains('%') {
        return pages::slug_at(path).map(Cow::Borrowed);
    }
    let is_slash = |escape: &str| escape.get(..2).is_some_and(|digits| digits.eq_ignore_ascii_case("2f"));
    if path.split('%').skip(1).any(is_slash) {
        return None;
    }
    let path = percent_encoding::percent_decode_str(path).decode_utf8().ok()?;
    pages::slug_at(&path).map(|slug| Cow::Owned(slug.to_owned()))
}

/// The page at a slug of the site with this name, or of the one that had it.
///
/// # Errors
/// The answer to give instead.
pub(crate) async fn find(edge: &Edge, subdomain: &str, slug: &str) -> Result<Found, Response> {
    let site = find_site(edge, subdomain).await?;
    find_page(edge, site, slug).await
}

async fn find_site(edge: &Edge, subdomain: &str) -> Result<Served<Site>, Response> {
    let Served { value, stale, hit } =
        edge.sites.find(subdomain, edge.clock.now()).await.map_err(cannot_say)?;
    let site = value.ok_or_else(nothing)?;
    if site.suspended {
        return Err(refuse(StatusCode::UNAVAILABLE_FOR_LEGAL_REASONS, "This site is suspended.\n"));
    }
    Ok(Served { value: site, stale, hit })
}

async fn find_page(edge: &Edge, site: Served<Site>, slug: &str) -> Result<Found, Response> {
    let Served { value, stale, hit } =
        edge.pages.find(site.value.subdomain_id, slug).await.map_err(cannot_say)?;
    let value = value.ok_or_else(nothing)?;
    Ok(Found { site: site.value, page: Served { value, stale: stale || site.stale, hit } })
}

/// There is nothing at this address.
pub(crate) fn nothing() -> Response {
    refuse(StatusCode::NOT_FOUND, "There is no page at this address.\n")
}

/// Whether there is something at this address can't be found out now.
pub(crate) fn cannot_say(error: NoAnswer) -> Response {
    match error {
        // Told by whoever waited for it; the others would only repeat it.
        NoAnswer::Away => tracing::debug!("a page that isn't kept can't be looked up"),
        NoAnswer::Refused(error) => tracing::warn!(%error, "a page that isn't kept can't be looked up"),
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

/// The whole page, or 304 if the visitor has it.
pub(crate) fn answer(asked: &HeaderMap, found: &Found) -> Response {
    let Found { site, page } = found;
    let RenderedParts { body, etag } = &*page.value.0;
    let mut headers = HeaderMap::with_capacity(8);
    headers.insert(header::ETAG, etag.clone());
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=0, must-revalidate"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    let from = how(page);
    service::metrics::counter("edge_page_serve_total").add(1, &[("from", from)]);
    headers.insert(X_CACHE, HeaderValue::from_static(from));
    if !site.claimed {
        headers.insert("x-robots-tag", HeaderValue::from_static("noindex"));
    }
    if has(asked, etag) {
        return (StatusCode::NOT_MODIFIED, headers).into_response();
    }
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    (headers, Body::from(body.clone())).into_response()
}

/// Whether `If-None-Match` names this version (weak comparison: RFC 9110, 13.1.2).
pub(crate) fn has(headers: &HeaderMap, etag: &HeaderValue) -> bool {
    let etag = etag.to_str().unwrap_or_default();
    let named = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let mut each = named.flat_map(|value| value.split(',')).map(|one| one.trim().trim_start_matches("W/"));
    each.any(|one| one == etag || one == "*")
}

fn how<T>(served: &Served<T>) -> &'static str {
    match (served.stale, served.hit) {
        (true, _) => "stale",
        (false, true) => "hit",
        (false, false) => "miss",
    }
}
