//! A public text, with its `ETag`. It is compressed by the first request that accepts gzip: it needs no key, so it must cost
//! little.

use std::io::Write;
use std::sync::OnceLock;

use axum::body::Bytes;
use axum::response::{IntoResponse, Response};
use flate2::Compression;
use flate2::write::GzEncoder;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use sha2::{Digest, Sha256};

/// A text that every caller may read.
#[derive(Debug)]
pub(crate) struct CachedText {
    text: Bytes,
    content_type: HeaderValue,
    /// The `Content-Security-Policy` of a page.
    policy: Option<HeaderValue>,
    /// Weak, because both forms of the text have it.
    tag: HeaderValue,
    compressed: OnceLock<Option<Bytes>>,
}

impl CachedText {
    /// A JSON document.
    pub(crate) fn json(text: String) -> Self {
        Self::new(text, "application/json", None)
    }

    /// A page.
    pub(super) fn html(text: String, policy: HeaderValue) -> Self {
        Self::new(text, "text/html; charset=utf-8", Some(policy))
    }

    /// A guide. Browsers show plain text, and save Markdown to a file.
    pub(super) fn markdown(text: String) -> Self {
        Self::new(text, "text/plain; charset=utf-8", None)
    }

    fn new(text: String, content_type: &'static str, policy: Option<HeaderValue>) -> Self {
        let hash: String =
            Sha256::digest(text.as_bytes()).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        let tag =
            HeaderValue::try_from(format!("W/\"{hash}\"")).unwrap_or(HeaderValue::from_static("W/\"\""));
        let content_type = HeaderValue::from_static(content_type);
        Self { text: text.into(), content_type, policy, tag, compressed: OnceLock::new() }
    }

    /// Answers a request for the text.
    pub(crate) fn answer(&self, request: &HeaderMap) -> Response {
        let headers = [
            (header::ETAG, self.tag.clone()),
            (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
            (header::VARY, HeaderValue::from_static("accept-encoding")),
        ];
        if is_known(request, &self.tag) {
            return (StatusCode::NOT_MODIFIED, headers).into_response();
        }
        let content_type = [(header::CONTENT_TYPE, self.content_type.clone())];
        let compressed = self.compressed.get_or_init(|| gzip(&self.text).ok());
        let mut response = match compressed.clone().filter(|_| accepts_gzip(request)) {
            Some(compressed) => {
                let coding = [(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"))];
                (headers, content_type, coding, compressed).into_response()
            }
            None => (headers, content_type, self.text.clone()).into_response(),
        };
        if let Some(policy) = &self.policy {
            let headers = response.headers_mut();
            headers.insert(header::CONTENT_SECURITY_POLICY, policy.clone());
            headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
        }
        response
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

/// Returns whether the client has the text with this tag (RFC 9110, 13.1.2: compared as a weak one).
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
