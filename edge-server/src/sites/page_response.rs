//! The response with a page: selects the body and counts the view.

use std::sync::Arc;

use http::{HeaderMap, HeaderValue, StatusCode, header};
use service::metrics::FastCounter;

use super::answers::address_headers::AddressHeaders;
use super::cache_status::CacheStatus;
use super::cached_response::{CachedResponse, WholeResponse};
use super::header_templates::HeaderTemplate;
use super::page_views::PageViews;
use super::pages::encodings::Accepted;
use super::pages::rendered_page::RenderedPage;
use crate::metrics;

/// A page that was found for a request.
pub(crate) struct FoundPage {
    pub(crate) page: RenderedPage,
    /// Whether the site's account is claimed; if not, search engines must not index it.
    pub(crate) is_claimed: bool,
    /// Headers that the site itself sets.
    pub(crate) headers: Option<Arc<AddressHeaders>>,
    pub(crate) cache_status: CacheStatus,
}

impl FoundPage {
    fn template(&self, with_body: bool, is_encoded: bool) -> &HeaderTemplate {
        match &self.headers {
            Some(headers) => headers.page_template(with_body),
            None => HeaderTemplate::of_page(with_body, is_encoded, self.is_claimed),
        }
    }
}

/// Makes the responses with sites' pages, and counts them.
pub(crate) struct PageResponder {
    pub(crate) views: PageViews,
    /// Pages served, at the position of each [`CacheStatus`].
    served: &'static [FastCounter; 3],
}

impl PageResponder {
    pub(crate) fn new(views: PageViews) -> Self {
        Self { views, served: metrics::PAGES_SERVED.counters() }
    }

    /// Returns the response with a page, or a 304 if its ETag `is_known`. Counts a view if it is for a GET.
    pub(crate) fn respond<'a>(
        &self,
        found: &'a FoundPage,
        is_get: bool,
        accepted: Accepted,
        is_known: impl Fn(&HeaderValue) -> bool,
    ) -> CachedResponse<'a> {
        if is_get && let Some(views) = found.page.views() {
            self.views.count(views);
        }
        let response = self.with_body(found, accepted);
        match response.etag {
            Some(etag) if is_known(etag) => CachedResponse {
                template: found.template(false, false),
                content_encoding: None,
                body: None,
                ..response
            },
            _ => response,
        }
    }

    /// Returns a 404 with the site's own not-found page. It has no ETag, because a 304 would mean that the requested page
    /// exists, it is not cached whatever the site says, and it counts no view.
    pub(crate) fn not_found(
        &self,
        found: &FoundPage,
        headers: &HeaderMap,
        request_id: HeaderValue,
    ) -> WholeResponse {
        let accepted = Accepted::from_headers(headers);
        let mut response = self.with_body(found, accepted).into_response(request_id);
        *response.status_mut() = StatusCode::NOT_FOUND;
        response.headers_mut().remove(header::ETAG);
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }

    /// Counts the page as served.
    fn with_body<'a>(&self, found: &'a FoundPage, accepted: Accepted) -> CachedResponse<'a> {
        self.served[found.cache_status as usize].add(1);
        let encoded = found.page.smallest_body(accepted);
        let is_encoded = encoded.coding.is_some();
        CachedResponse {
            template: found.template(true, is_encoded),
            etag: Some(&encoded.etag),
            cache_status: Some(found.cache_status),
            content_encoding: encoded.coding.as_ref(),
            hsts: None,
            body: Some(&encoded.body),
        }
    }
}
