//! Sends files, whole or in part: small ones from the cache, larger ones as a stream.

use std::ops::Range;
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

use super::ranges::ByteRange;
use crate::config::weight;
use crate::etag;
use crate::sites::error_responses::{plain_error, unavailable};

/// Size up to which a file is cached; larger ones are streamed every time.
const MAX_CACHED_BYTES: u64 = 256 << 10;
/// Maximum age of a cached body. A body is identified by its digest, so it never changes and only leaves by eviction.
const MAX_AGE: Duration = Duration::from_secs(24 * 3_600);

/// The bytes of small files.
pub(crate) struct FileBodyCache {
    blobs: Blobs,
    bodies: StaleOnErrorCache<Name, Bytes>,
}

impl FileBodyCache {
    pub(crate) fn new(blobs: Blobs, max_bytes: u64) -> Self {
        let bounds = Bounds { max_bytes, max_age: MAX_AGE, retry_interval: Duration::from_secs(1) };
        let weigh = |_: &Name, bytes: &Bytes| weight(128 + bytes.len());
        Self { blobs, bodies: StaleOnErrorCache::new(bounds, weigh) }
    }

    async fn read(&self, name: Name, size: u64, range: Range<u64>) -> Result<Body, blobs::Error> {
        if size > MAX_CACHED_BYTES {
            return Ok(Body::from_stream(self.blobs.read(name, range).await?));
        }
        let load = async {
            let parts: Vec<Bytes> = self.blobs.read(name, 0..size).await?.try_collect().await?;
            Ok::<_, blobs::Error>(Bytes::from(parts.concat()))
        };
        let bytes = self.bodies.get(&name, Instant::now(), load).await?.value;
        let at = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
        Ok(Body::from(bytes.slice(at(range.start)..at(range.end))))
    }

    /// Returns the response with a file: the whole of it, the requested range, or a 304. `headers` describe the file.
    pub(crate) async fn respond(
        &self,
        file: &ServedFile,
        request: &Parts,
        mut headers: HeaderMap,
    ) -> Response {
        let etag = etag::from_digest(&file.sha256);
        headers.insert(header::ETAG, etag.clone());
        headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        if etag::is_listed(&request.headers, &etag) {
            headers.remove(header::CONTENT_TYPE);
            return (StatusCode::NOT_MODIFIED, headers).into_response();
        }
        let size = u64::try_from(file.size_bytes).unwrap_or_default();
        let is_head = request.method == Method::HEAD;
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
