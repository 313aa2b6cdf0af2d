//! `/p/<slug>` on the base host: a page without its site's name.
//!
//! User HTML must never share an origin with the API, because a page there could call the API with the visitor's cookie.
//! So the response is sandboxed, which gives it an origin of its own.

use std::time::Instant;

use axum::body::Body;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use domain::static_sites::site_path::address_of;
use http::{HeaderMap, HeaderValue, Method, header};
use store::read_pool::ReadError;
use web::{Path, Problem};

use super::classify_host::SiteHost;
use super::error_responses::{busy, lookup_failed, not_found};
use super::page_lookup::{Found, find_page_of_host, record_miss, respond};
use crate::cpu_work::Busy;
use crate::state::EdgeState;

const SANDBOX: &str = "sandbox allow-scripts allow-forms allow-popups allow-modals";

pub(crate) async fn show(
    State(state): State<EdgeState>,
    slug: Result<Path<String>, Problem>,
    RawQuery(query): RawQuery,
    method: Method,
    headers: HeaderMap,
) -> Response {
    let Ok(Path(slug)) = slug else { return not_found() };
    if !domain::pages::check_slug(&slug).is_empty() {
        return not_found();
    }
    let began = Instant::now();
    let name = match site_name(&state, &slug, query.as_deref().unwrap_or_default()).await {
        Ok(Some(name)) => name,
        Ok(None) => return not_found(),
        Err(error) => return lookup_failed(error),
    };
    let (site, mut found) = match find_page_of_host(&state, SiteHost::Subdomain(&name), &slug).await {
        Ok(found) => found,
        Err(response) => return response,
    };
    let name = site.moved_to.as_deref().unwrap_or(&name);
    // Relative references of a deployed file are relative to its own path.
    let base_url = match found.page.path() {
        Some(path) => format!("{}{}", state.addresses.site(name), address_of(path)),
        None => state.addresses.page(name, &slug),
    };
    found.page = match state.answers.at_base_url(&found.page, (&site, &slug), &base_url).await {
        Ok(page) => page,
        Err(Busy) => return busy(),
    };
    record_miss(found.cache_status, began);
    let found = Found::from(found);
    let mut response = respond(&state, &found, method == Method::GET, &headers).map(Body::new);
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(SANDBOX));
    response
}

/// Returns the site in `?site=`, or the one that the bare slug belongs to. Other parameters are ignored, because shared
/// links often carry tracking parameters.
async fn site_name(state: &EdgeState, slug: &str, query: &str) -> Result<Option<String>, ReadError> {
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    match pairs.find(|(name, _)| name == "site") {
        Some((_, site)) => Ok(Some(site.into_owned())),
        None => state.short_urls.find(slug).await,
    }
}
