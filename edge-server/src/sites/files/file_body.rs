//! Sending files: whole or in part, from memory where they are small, streamed where they are not.

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

use crate::config::weight;
use crate::sites::files::ranges::{self, Part};
use crate::sites::page_response::has;
use crate::sites::site_handler::refuse;
use crate::state::EdgeState;

/// Larger files are streamed every time.
const KEPT_BYTES: u64 = 256 << 10;
/// Bytes under the name of their digest never change; they leave when others need the room.
const KEPT_FOR: Duration = Duration::from_secs(24 * 3_600);

/// The bytes of small files, as far as they were asked for.
pub(crate) struct FileBodyCache {
    blobs: Blobs,
    kept: StaleOnErrorCache<Name, Bytes>,
}

impl FileBodyCache {
    pub(crate) fn new(blobs: Blobs, max_bytes: u64) -> Self {
        let bounds = Bounds { max_bytes, max_age: KEPT_FOR, retry_interval: Duration::from_secs(1) };
        let weigh = |_: &Name, bytes: &Bytes| weight(128 + bytes.len());
        Self { blobs, kept: StaleOnErrorCache::new(bounds, weigh) }
    }

    async fn read(&self, name: Name, size: u64, range: Range<u64>) -> Result<Body, blobs::Error> {
        if size > KEPT_BYTES {
            return Ok(Body::from_stream(self.blobs.read(name, range).await?));
        }
        let load = async {
            let parts: Vec<Bytes> = self.blobs.read(name, 0..size).await?.try_collect().await?;
            Ok::<_, blobs::Error>(Bytes::from(parts.concat()))
        };
        let bytes = self.kept.get(&name, Instant::now(), load).await?.value;
        let at = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
        Ok(Body::from(bytes.slice(at(range.start)..at(range.end))))
    }
}

/// The file, the part of it that is asked for, or that the visitor has it already. `headers` say what it is.
pub(crate) async fn send(
    edge: &EdgeState,
    file: &ServedFile,
    asked: &Parts,
    mut headers: HeaderMap,
) -> Response {
    let etag = format!("\"{}\"", hex::encode(&file.sha256[..16]));
    // Hexadecimal digits in quotes are always a header value.
    let etag = HeaderValue::from_str(&etag).unwrap_or(HeaderValue::from_static("\"\""));
    headers.insert(header::ETAG, etag.clone());
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if has(&asked.headers, &etag) {
        headers.remove(header::CONTENT_TYPE);
        return (StatusCode::NOT_MODIFIED, headers).into_response();
    }
    let size = u64::try_from(file.size_bytes).unwrap_or_default();
    let is_head = asked.method == Method::HEAD;
    let part = if is_head { Part::Whole } else { ranges::asked(&asked.headers, size, &etag) };
    let (status, range) = match part {
        Part::Whole => (StatusCode::OK, 0..size),
        Part::Some(range) => (StatusCode::PARTIAL_CONTENT, range),
        Part::None => {
            let mut response = refuse(StatusCode::RANGE_NOT_SATISFIABLE, "The file has no such part.\n");
            insert(response.headers_mut(), header::CONTENT_RANGE, &format!("bytes */{size}"));
            return response;
        }
    };
    if status == StatusCode::PARTIAL_CONTENT {
        let written = format!("bytes {}-{}/{size}", range.start, range.end - 1);
        insert(&mut headers, header::CONTENT_RANGE, &written);
    }
    headers.insert(header::CONTENT_LENGTH, (range.end - range.start).into());
    if is_head {
        return (status, headers).into_response();
    }
    let name = Name { account_id: file.account_id, sha256: file.sha256 };
    match edge.bodies.read(name, size, range).await {
        Ok(body) => (status, headers, body).into_response(),
        Err(error) => cannot_read(&error),
    }
}

/// Inserts a value that is made of digits and words, and so always one.
fn insert(headers: &mut HeaderMap, name: header::HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}

fn cannot_read(error: &blobs::Error) -> Response {
    if error.is_transient() {
        tracing::warn!(%error, "a file can't be read now");
    } else {
        tracing::error!(%error, "a file that should be there can't be read");
    }
    let mut response =
        refuse(StatusCode::SERVICE_UNAVAILABLE, "This file can't be shown right now; try again shortly.\n");
    response.headers_mut().insert(header::RETRY_AFTER, 2.into());
    response
}
