//! What visitors see of a site: rendered once, kept with its headers, served from memory.

use std::sync::Arc;
use std::time::Instant;

use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Response};
use cache::{Fresh, Served};
use domain::pages;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use sha2::{Digest, Sha256};
use store::subdomains::Site;
use uuid::Uuid;

use crate::config::{Cache, weight};
use crate::edge::Edge;

/// Says where an answer came from: `hit`, `miss` or `stale` (Postgres is away and this is what we had).
const X_CACHE: &str = "x-cache";

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
    db: store::Db,
    kept: Fresh<(Uuid, String), Option<Rendered>>,
}

impl Pages {
    pub(crate) fn new(db: store::Db, config: &Cache) -> Self {
        let weigh = |key: &(Uuid, String), page: &Option<Rendered>| {
            weight(256 + key.1.len() + page.as_ref().map_or(0, |page| page.0.body.len()))
        };
        Self { db, kept: Fresh::new(config.bounds(config.page_bytes), weigh) }
    }

    /// The page of a site at a slug.
    ///
    /// # Errors
    /// It isn't kept and Postgres is away.
    pub(crate) async fn find(
        &self,
        subdomain_id: Uuid,
        slug: &str,
    ) -> Result<Served<Option<Rendered>>, store::Error> {
        let key = (subdomain_id, slug.to_owned());
        self.kept
            .get(&key, Instant::now(), async {
                let mut conn = store::acquire(&self.db).await?;
                let document = store::pages::find_document(&mut conn, subdomain_id, slug).await?;
                Ok(document.map(|page| Rendered::new(pages::render(&page.html, page.css.as_deref()))))
            })
            .await
    }

    /// Asks again before the page is served next.
    pub(crate) fn forget(&self, subdomain_id: Uuid, slug: String) {
        self.kept.invalidate(&(subdomain_id, slug));
    }

    /// Asks again about every page.
    pub(crate) fn forget_all(&self) {
        self.kept.expire_all();
    }
}

/// Answers a request on a site's own host.
pub(crate) async fn serve(edge: &Edge, subdomain: &str, asked: &Parts) -> Response {
    if !matches!(asked.method, Method::GET | Method::HEAD) {
        return (StatusCode::METHOD_NOT_ALLOWED, [(header::ALLOW, "GET, HEAD")]).into_response();
    }
    let (site, page) = match find(edge, subdomain, asked.uri.path()).await {
        Ok(found) => found,
        Err(refusal) => return refusal,
    };
    let mut response = answer(&asked.headers, &page.value);
    let headers = response.headers_mut();
    headers.insert(X_CACHE, HeaderValue::from_static(how(&page)));
    if !site.claimed {
        headers.insert("x-robots-tag", HeaderValue::from_static("noindex"));
    }
    response
}

/// The site under a subdomain's name and its page at a path.
///
/// # Errors
/// The answer to give instead.
pub(crate) async fn find(
    edge: &Edge,
    subdomain: &str,
    path: &str,
) -> Result<(Site, Served<Rendered>), Response> {
    let away = |error: store::Error| {
        tracing::warn!(%error, "a page that isn't kept can't be looked up");
        let retry = [(header::RETRY_AFTER, "2")];
        (StatusCode::SERVICE_UNAVAILABLE, retry, "This page can't be shown right now; try again shortly.\n")
            .into_response()
    };
    let nothing = || (StatusCode::NOT_FOUND, "There is no page at this address.\n").into_response();
    let site = edge.sites.find(subdomain).await.map_err(away)?.value.ok_or_else(nothing)?;
    if site.suspended {
        let gone = (StatusCode::UNAVAILABLE_FOR_LEGAL_REASONS, "This site is suspended.\n");
        return Err(gone.into_response());
    }
    let slug = pages::slug_at(path).ok_or_else(nothing)?;
    let Served { value, stale, hit } = edge.pages.find(site.subdomain_id, slug).await.map_err(away)?;
    Ok((site, Served { value: value.ok_or_else(nothing)?, stale, hit }))
}

/// The whole page, or 304 if the visitor has it.
pub(crate) fn answer(asked: &HeaderMap, page: &Rendered) -> Response {
    let mut headers = HeaderMap::with_capacity(8);
    headers.insert(header::ETAG, page.0.etag.clone());
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=0, must-revalidate"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if has(asked, &page.0.etag) {
        return (StatusCode::NOT_MODIFIED, headers).into_response();
    }
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    (headers, Body::from(page.0.body.clone())).into_response()
}

/// Whether `If-None-Match` names this version (weak comparison: RFC 9110, 13.1.2).
fn has(headers: &HeaderMap, etag: &HeaderValue) -> bool {
    let named = headers.get(header::IF_NONE_MATCH).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let etag = etag.to_str().unwrap_or_default();
    named.split(',').map(|one| one.trim().trim_start_matches("W/")).any(|one| one == etag || one == "*")
}

fn how<T>(served: &Served<T>) -> &'static str {
    match (served.stale, served.hit) {
        (true, _) => "stale",
        (false, true) => "hit",
        (false, false) => "miss",
    }
}
