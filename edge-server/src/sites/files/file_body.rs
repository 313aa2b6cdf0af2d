//! Sends files, whole or in part: small and compressed ones from the caches, larger ones as a stream.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Response};
use blobs::{Blobs, Name};
use cache::{Bounds, StaleOnErrorCache};
use domain::Transient;
use futures::TryStreamExt;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use store::served_files::ServedFile;

use super::compressed_files::{CompressedFiles, is_compressed};
use super::found_file::FileBody;
use super::ranges::ByteRange;
use super::site_file::SiteFile;
use crate::config::weight;
use crate::etag;
use crate::metrics::CacheName;
use crate::sites::error_responses::{plain_error, unavailable};
use crate::sites::pages::compressor::Compressor;
use crate::sites::pages::encoded::{Compressed, Encoded};
use crate::sites::pages::encodings::Accepted;

/// Size up to which a file is cached; larger ones are streamed every time.
const MAX_CACHED_BYTES: u64 = 256 << 10;
/// Maximum age of a cached body. A body is identified by its digest, so it never changes and only leaves by eviction.
const MAX_AGE: Duration = Duration::from_secs(24 * 3_600);

/// The bytes of small files, and the compressed bytes of texts.
pub(crate) struct FileBodyCache {
    blobs: Blobs,
    bodies: StaleOnErrorCache<Name, Bytes>,
    compressed: CompressedFiles,
}

impl FileBodyCache {
    pub(crate) fn new(blobs: Blobs, max_bytes: u64, compressor: Compressor) -> Self {
        let retry_interval = Duration::from_secs(1);
        // Half for each.
        let bounds = Bounds { max_bytes: max_bytes / 2, max_age: MAX_AGE, retry_interval };
        let weigh = |_: &Name, bytes: &Bytes| weight(128 + bytes.len());
        let compressed = CompressedFiles::new(blobs.clone(), bounds, compressor);
        Self { blobs, bodies: CacheName::Files.new_cache(bounds, weigh), compressed }
    }

    async fn read(&self, name: Name, size: u64, range: Range<u64>) -> Result<Body, blobs::Error> {
        if size > MAX_CACHED_BYTES {
            return Ok(Body::from_stream(self.blobs.read(name, range).await?));
        }
        let bytes = self.read_cached(name, size).await?;
        let at = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
        Ok(Body::from(bytes.slice(at(range.start)..at(range.end))))
    }

    /// Returns the body to send of a file, if it is cached.
    pub(crate) fn peek(&self, file: &SiteFile, accepted: Accepted, now: Instant) -> Option<FileBody> {
        let name = file.blob();
        if file.is_compressed && !accepted.is_empty() {
            let compressed = self.compressed.peek(&name, now)?;
            if let Some(encoded) = compressed.smallest(accepted) {
                return Some(FileBody { sent: encoded.clone(), compressed: Some(compressed) });
            }
        }
        self.bodies.peek(&name, now).map(|bytes| FileBody::plain(file, bytes))
    }

    /// Returns the body to send of a file that is small enough to be cached uncompressed, and caches it. A larger one is
    /// returned only if it is cached.
    pub(crate) async fn find_small(&self, file: &SiteFile, accepted: Accepted) -> Option<FileBody> {
        match file.bytes() > MAX_CACHED_BYTES {
            true => self.peek(file, accepted, Instant::now()),
            false => self.find(file, accepted).await,
        }
    }

    /// Returns the body to send of a file, and caches it. `None` if it is too large for that or can't be read.
    pub(crate) async fn find(&self, file: &SiteFile, accepted: Accepted) -> Option<FileBody> {
        if file.is_compressed
            && !accepted.is_empty()
            && let Some(compressed) = self.compressed.find(&file.found.file).await
            && let Some(encoded) = compressed.smallest(accepted)
        {
            return Some(FileBody { sent: encoded.clone(), compressed: Some(compressed) });
        }
        if file.bytes() > MAX_CACHED_BYTES {
            return None;
        }
        Some(FileBody::plain(file, self.read_cached(file.blob(), file.bytes()).await.ok()?))
    }

    async fn read_cached(&self, name: Name, size: u64) -> Result<Bytes, blobs::Error> {
        let load = async {
            let parts: Vec<Bytes> = self.blobs.read(name, 0..size).await?.try_collect().await?;
            Ok::<_, blobs::Error>(Bytes::from(parts.concat()))
        };
        Ok(self.bodies.get(&name, Instant::now(), load).await?.value)
    }

    /// Returns the response with a file: the whole of it, compressed if the client accepts that, the requested range of
    /// the uncompressed file, or a 304. `headers` describe the file.
    pub(crate) async fn respond(&self, file: &ServedFile, request: &Parts, headers: HeaderMap) -> Response {
        let compressed = self.compressed(file, request).await;
        self.respond_with(file, compressed, request, headers).await
    }

    /// Returns the response with a file, like [`Self::respond`], but uncompressed.
    pub(crate) async fn respond_plain(
        &self,
        file: &ServedFile,
        request: &Parts,
        headers: HeaderMap,
    ) -> Response {
        self.respond_with(file, None, request, headers).await
    }

    async fn respond_with(
        &self,
        file: &ServedFile,
        compressed: Option<Arc<Compressed>>,
        request: &Parts,
        mut headers: HeaderMap,
    ) -> Response {
        let etag = etag::from_digest(&file.sha256);
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        let is_head = request.method == Method::HEAD;
        if is_compressed(file) {
            headers.append(header::VARY, HeaderValue::from_static("accept-encoding"));
        }
        if etag::is_listed(&request.headers, &etag) {
            return not_modified(&etag, headers);
        }
        if let Some(compressed) = compressed {
            // Each body is the same file, so a client that has any of them has the current one.
            let known = compressed.all().find(|one| etag::is_listed(&request.headers, &one.etag));
            if let Some(known) = known {
                return not_modified(&known.etag, headers);
            }
            if let Some(encoded) = compressed.smallest(Accepted::from_headers(&request.headers)) {
                return with_encoded(encoded, headers, is_head);
            }
        }
        headers.insert(header::ETAG, etag.clone());
        headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        let size = u64::try_from(file.size_bytes).unwrap_or_default();
        let range = if is_head { ByteRange::Whole } else { ByteRange::parse(&request.headers, size, &etag) };
        let (status, range) = match range {
            ByteRange::Whole => (StatusCode::OK, 0..size),
            ByteRange::Part(range) => (StatusCode::PARTIAL_CONTENT, range),
            ByteRange::Unsatisfiable => {
                let text = "The file has no such part.\n";
                let mut response = plain_error(StatusCode::RANGE_NOT_SATISFIABLE, text);
                insert(response.headers_mut(), header::CONTENT_RANGE, &format!("bytes */{size}"));
                return response;
            }
        };
        if status == StatusCode::PARTIAL_CONTENT {
            let content_range = format!("bytes {}-{}/{size}", range.start, range.end - 1);
            insert(&mut headers, header::CONTENT_RANGE, &content_range);
        }
        headers.insert(header::CONTENT_LENGTH, (range.end - range.start).into());
        if is_head {
            return (status, headers).into_response();
        }
        let name = Name { account_id: file.account_id, sha256: file.sha256 };
        match self.read(name, size, range).await {
            Ok(body) => (status, headers, body).into_response(),
            Err(error) => read_failed(&error),
        }
    }

    /// Returns a 404 with a file. It has no ETag and is not cached, whatever the headers say.
    pub(crate) async fn not_found(&self, file: &ServedFile, request: &Parts, headers: HeaderMap) -> Response {
        let mut whole = request.clone();
        for name in [header::RANGE, header::IF_RANGE, header::IF_NONE_MATCH] {
            whole.headers.remove(name);
        }
        let mut response = self.respond(file, &whole, headers).await;
        if response.status() == StatusCode::OK {
            *response.status_mut() = StatusCode::NOT_FOUND;
            response.headers_mut().remove(header::ETAG);
            response.headers_mut().remove(header::ACCEPT_RANGES);
            response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        }
        response
    }

    /// Returns the compressed bodies of a file that the client accepts one of. Ranges are those of the uncompressed file.
    async fn compressed(&self, file: &ServedFile, request: &Parts) -> Option<Arc<Compressed>> {
        let has_range = request.headers.contains_key(header::RANGE) && request.method == Method::GET;
        let is_accepted = !Accepted::from_headers(&request.headers).is_empty();
        if is_compressed(file) && is_accepted && !has_range { self.compressed.find(file).await } else { None }
    }
}

fn not_modified(etag: &HeaderValue, headers: HeaderMap) -> Response {
    let mut headers = etag::not_modified_headers(headers);
    headers.insert(header::ETAG, etag.clone());
    (StatusCode::NOT_MODIFIED, headers).into_response()
}

fn with_encoded(encoded: &Encoded, mut headers: HeaderMap, is_head: bool) -> Response {
    headers.insert(header::ETAG, encoded.etag.clone());
    if let Some(coding) = &encoded.coding {
        headers.insert(header::CONTENT_ENCODING, coding.clone());
    }
    headers.insert(header::CONTENT_LENGTH, encoded.body.len().into());
    let body = if is_head { Body::empty() } else { Body::from(encoded.body.clone()) };
    (StatusCode::OK, headers, body).into_response()
}

/// Inserts a value of digits and words, which is always valid.
fn insert(headers: &mut HeaderMap, name: header::HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

fn read_failed(error: &blobs::Error) -> Response {
    if error.is_transient() {
        tracing::warn!(%error, "a file can't be read now");
    } else {
        tracing::error!(%error, "a stored file can't be read");
    }
    unavailable("This file can't be shown right now; try again shortly.\n")
}
