//! The API's own description.

use std::io::Write;
use std::sync::{Arc, OnceLock};

use aide::openapi::OpenApi;
use axum::Router;
use axum::body::Bytes;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use sha2::{Digest, Sha256};
use web::Resource;

use crate::App;

/// Has no routes: [`document_route`] serves the finished document.
pub(super) fn resource() -> Resource<App> {
    Resource::new("system")
}

/// `GET /api/openapi.json`.
pub(super) fn document_route(document: &OpenApi) -> Router<App> {
    let document = Arc::new(Document::new(serde_json::to_string_pretty(document).unwrap_or_default()));
    Router::new().route("/api/openapi.json", get(async move |headers: HeaderMap| document.answer(&headers)))
}

/// The document, compressed by the first request that accepts gzip: it needs no key, so it must cost little.
struct Document {
    text: Bytes,
    /// Weak, because both forms of the document have it.
    tag: HeaderValue,
    compressed: OnceLock<Option<Bytes>>,
}

impl Document {
    fn new(text: String) -> Self {
        let hash: String =
            Sha256::digest(text.as_bytes()).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        let tag =
            HeaderValue::try_from(format!("W/\"{hash}\"")).unwrap_or(HeaderValue::from_static("W/\"\""));
        Self { text: text.into(), tag, compressed: OnceLock::new() }
    }

    fn answer(&self, request: &HeaderMap) -> Response {
        let headers = [
            (header::ETAG, self.tag.clone()),
            (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
            (header::VARY, HeaderValue::from_static("accept-encoding")),
        ];
        if is_known(request, &self.tag) {
            return (StatusCode::NOT_MODIFIED, headers).into_response();
        }
        let json = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
        let compressed = self.compressed.get_or_init(|| gzip(&self.text).ok());
        match compressed.clone().filter(|_| accepts_gzip(request)) {
            Some(compressed) => {
                let coding = [(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"))];
                (headers, json, coding, compressed).into_response()
            }
            None => (headers, json, self.text.clone()).into_response(),
        }
    }
}

fn gzip(text: &[u8]) -> std::io::Result<Bytes> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text)?;
    encoder.finish().map(Bytes::from)
}

/// Returns the comma-separated words of a header.
fn words(headers: &HeaderMap, name: header::HeaderName) -> impl Iterator<Item = &str> {
    let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim)
}

/// Returns whether the client has the document with this tag (RFC 9110, 13.1.2: compared as a weak one).
fn is_known(request: &HeaderMap, tag: &HeaderValue) -> bool {
    let strong = |text: &str| text.trim_start_matches("W/").to_owned();
    let tag = tag.to_str().map(strong).unwrap_or_default();
    words(request, header::IF_NONE_MATCH).any(|known| known == "*" || strong(known) == tag)
}

fn accepts_gzip(request: &HeaderMap) -> bool {
    words(request, header::ACCEPT_ENCODING).any(|accepted| {
        let (coding, weight) = accepted.split_once(';').unwrap_or((accepted, ""));
        let weight = weight.trim().strip_prefix("q=").and_then(|weight| weight.parse::<f32>().ok());
        coding.trim().eq_ignore_ascii_case("gzip") && weight.is_none_or(|weight| weight > 0.0)
    })
}
