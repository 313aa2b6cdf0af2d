//! The response with a page: selects the body, counts the view, and writes the head as a header map for hyper or as
//! prepared lines for the fast path.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use http_body_util::Full;
use service::metrics::FastCounter;

use super::answers::address_headers::AddressHeaders;
use super::cache_status::CacheStatus;
use super::header_templates::{HeaderTemplate, X_CACHE};
use super::page_views::PageViews;
use super::pages::encodings::Accepted;
use super::pages::rendered_page::RenderedPage;
use crate::etag;
use crate::request_id::X_REQUEST_ID;

/// A response with its whole body in memory.
pub(crate) type WholeResponse = Response<Full<Bytes>>;

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

/// A response that is ready to be written, and borrows everything from the caches.
pub(crate) struct PageResponse<'a> {
    template: &'a HeaderTemplate,
    etag: Option<&'a HeaderValue>,
    cache_status: Option<CacheStatus>,
    content_encoding: Option<&'a HeaderValue>,
    /// `None` for a 304.
    body: Option<&'a Bytes>,
}

impl<'a> PageResponse<'a> {
    /// Returns a 200 response without an ETag and a cache status.
    pub(crate) fn new(
        template: &'a HeaderTemplate,
        content_encoding: Option<&'a HeaderValue>,
        body: &'a Bytes,
    ) -> Self {
        Self { template, etag: None, cache_status: None, content_encoding, body: Some(body) }
    }

    /// Returns the body, also for a HEAD request.
    pub(crate) fn body(&self) -> Option<&Bytes> {
        self.body
    }

    /// Writes the status line and the headers, except those that depend on the request alone.
    pub(crate) fn write_head(&self, head: &mut Vec<u8>) {
        let mut put = |parts: &[&[u8]]| parts.iter().for_each(|part| head.extend_from_slice(part));
        put(&[
            if self.body.is_some() { b"HTTP/1.1 200 OK\r\n" } else { b"HTTP/1.1 304 Not Modified\r\n" },
            &self.template.lines,
        ]);
        if let Some(etag) = self.etag {
            put(&[b"etag: ", etag.as_bytes(), b"\r\n"]);
        }
        if let Some(status) = self.cache_status {
            put(&[b"x-cache: ", status.as_str().as_bytes(), b"\r\n"]);
        }
        if let Some(coding) = self.content_encoding {
            put(&[b"content-encoding: ", coding.as_bytes(), b"\r\n"]);
        }
        if let Some(body) = self.body {
            put(&[b"content-length: ", itoa::Buffer::new().format(body.len()).as_bytes(), b"\r\n"]);
        }
    }

    /// Returns the response for hyper.
    pub(crate) fn into_response(self, request_id: HeaderValue) -> WholeResponse {
        let mut headers = self.template.headers.clone();
        if let Some(etag) = self.etag {
            headers.insert(header::ETAG, etag.clone());
        }
        if let Some(coding) = self.content_encoding {
            headers.insert(header::CONTENT_ENCODING, coding.clone());
        }
        if let Some(status) = self.cache_status.filter(|status| *status != CacheStatus::Hit) {
            headers.insert(&X_CACHE, HeaderValue::from_static(status.as_str()));
        }
        headers.insert(&X_REQUEST_ID, request_id);
        let mut response = Response::new(Full::new(self.body.cloned().unwrap_or_default()));
        if self.body.is_none() {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
        }
        *response.headers_mut() = headers;
        response
    }
}

/// Makes the responses with sites' pages, and counts them.
pub(crate) struct PageResponder {
    pub(crate) views: PageViews,
    /// Pages served, in the order of [`CacheStatus::ALL`].
    served: [FastCounter; 3],
}

impl PageResponder {
    pub(crate) fn new(views: PageViews) -> Self {
        let statuses = CacheStatus::ALL.map(CacheStatus::as_str);
        Self { views, served: service::metrics::fast_counters("edge_pages_served_total", "from", statuses) }
    }

    /// Returns the response with a page, or a 304 if `if_none_match` lists its ETag. Counts a view if it is for a GET.
    pub(crate) fn respond<'a, 'v>(
        &self,
        found: &'a FoundPage,
        is_get: bool,
        accepted: Accepted,
        if_none_match: impl Iterator<Item = &'v [u8]>,
    ) -> PageResponse<'a> {
        if is_get && let Some(views) = found.page.views() {
            self.views.count(views);
        }
        let response = self.with_body(found, accepted);
        match response.etag {
            Some(etag) if etag::is_listed_in(if_none_match, etag) => PageResponse {
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
    fn with_body<'a>(&self, found: &'a FoundPage, accepted: Accepted) -> PageResponse<'a> {
        self.served[found.cache_status as usize].add(1);
        let encoded = found.page.smallest_body(accepted);
        let is_encoded = encoded.coding.is_some();
        PageResponse {
            template: found.template(true, is_encoded),
            etag: Some(&encoded.etag),
            cache_status: Some(found.cache_status),
            content_encoding: encoded.coding.as_ref(),
            body: Some(&encoded.body),
        }
    }
}
