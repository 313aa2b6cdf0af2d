//! Looks up the page of a form for a request, as [`crate::sites::page_lookup`] does for sites.

use std::sync::Arc;
use std::time::Instant;

use http::{HeaderMap, HeaderValue, header};
use uuid::Uuid;

use super::closed::closed_reason;
use super::pages::cached_page::CachedFormPage;
use super::pages::languages::Language;
use super::pages::page::Presentation;
use super::pages::presentation::is_bare;
use crate::page_request::PageRequest;
use crate::request_id::request_id;
use crate::sites::cached_response::WholeResponse;
use crate::sites::classify_host::{HostKind, classify_host, normalized_host};
use crate::sites::pages::encodings::Accepted;
use crate::state::EdgeState;

/// Returns the page for a request without answers in its query, if form and page are cached. `languages` is the value of
/// `Accept-Language`.
pub(crate) fn find_cached(
    state: &EdgeState,
    request: &PageRequest<'_>,
    languages: Option<&[u8]>,
    now: Instant,
) -> Option<Arc<CachedFormPage>> {
    let open = state.forms.peek(form_id(state, request)?, now)?;
    if closed_reason(&open, state.clock.now()).is_some() {
        return None;
    }
    state.forms.peek_page(&open, presentation(request, languages), now)
}

/// Returns the same page, loaded and rendered if necessary. `None` if the response is anything but the untouched form.
pub(crate) async fn find(
    state: &EdgeState,
    request: &PageRequest<'_>,
    languages: Option<&[u8]>,
) -> Option<Arc<CachedFormPage>> {
    let open = state.forms.find(form_id(state, request)?).await.ok()?;
    if closed_reason(&open, state.clock.now()).is_some() {
        return None;
    }
    state.forms.page(&state.form_renderer, &open, presentation(request, languages)).await
}

/// Returns the response to a request that hyper has parsed, if form and page are cached.
pub(crate) fn answer_cached(
    state: &EdgeState,
    request: &PageRequest<'_>,
    headers: &HeaderMap,
) -> Option<WholeResponse> {
    let mut languages = headers.get_all(header::ACCEPT_LANGUAGE).iter().map(HeaderValue::as_bytes);
    let (first, None) = (languages.next(), languages.next()) else { return None };
    let page = find_cached(state, request, first, Instant::now())?;
    Some(respond(state, &page, headers))
}

/// Returns the response with a cached page.
pub(super) fn respond(state: &EdgeState, page: &CachedFormPage, headers: &HeaderMap) -> WholeResponse {
    let accepted = Accepted::from_headers(headers);
    let (body, is_gzip) = state.form_renderer.fill(page, accepted, state.clock.now().timestamp());
    page.response(&body, is_gzip).into_response(request_id(headers, &state.rng))
}

fn presentation(request: &PageRequest<'_>, languages: Option<&[u8]>) -> Presentation {
    Presentation::from_query(request.query, || Language::preferred_in(languages.into_iter()))
}

/// Returns the form's id if the request is for an untouched form on the base host.
fn form_id(state: &EdgeState, request: &PageRequest<'_>) -> Option<Uuid> {
    let id = request.path.strip_prefix("/f/")?;
    let kind = classify_host(&state.addresses, normalized_host(request.host)?);
    if kind == HostKind::Base && is_bare(request.query) { id.parse().ok() } else { None }
}
