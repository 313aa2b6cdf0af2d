//! A response from the caches: its head is written as a header map for hyper or as prepared lines for the fast path.

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::Full;

use super::cache_status::CacheStatus;
use super::header_templates::{HeaderTemplate, X_CACHE};
use super::pages::encoded::Encoded;
use crate::request_id::X_REQUEST_ID;

/// A response with its whole body in memory.
pub(crate) type WholeResponse = Response<Full<Bytes>>;

/// A response that is ready to be written, and borrows everything from the caches.
pub(crate) struct CachedResponse<'a> {
    pub(super) template: &'a HeaderTemplate,
    pub(super) etag: Option<&'a HeaderValue>,
    pub(super) cache_status: Option<CacheStatus>,
    pub(super) content_encoding: Option<&'a HeaderValue>,
    /// The value of `Strict-Transport-Security`.
    pub(super) hsts: Option<&'a str>,
    /// `None` for a 304.
    pub(super) body: Option<&'a Bytes>,
}

impl<'a> CachedResponse<'a> {
    /// Returns a 200 response without an ETag and a cache status.
    pub(crate) fn new(
        template: &'a HeaderTemplate,
        content_encoding: Option<&'a HeaderValue>,
        body: &'a Bytes,
    ) -> Self {
        Self { template, etag: None, cache_status: None, content_encoding, hsts: None, body: Some(body) }
    }

    /// Returns the response with a file. Without `sent` it is a 304.
    pub(super) fn of_file(
        template: &'a HeaderTemplate,
        etag: &'a HeaderValue,
        sent: Option<&'a Encoded>,
    ) -> Self {
        let content_encoding = sent.and_then(|sent| sent.coding.as_ref());
        let body = sent.map(|sent| &sent.body);
        Self { template, etag: Some(etag), cache_status: None, content_encoding, hsts: None, body }
    }

    /// Returns 200 or 304.
    pub(crate) fn status(&self) -> StatusCode {
        if self.body.is_some() { StatusCode::OK } else { StatusCode::NOT_MODIFIED }
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
        if let Some(hsts) = self.hsts {
            put(&[b"strict-transport-security: ", hsts.as_bytes(), b"\r\n"]);
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
        if let Some(Ok(hsts)) = self.hsts.map(HeaderValue::from_str) {
            headers.insert(header::STRICT_TRANSPORT_SECURITY, hsts);
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
