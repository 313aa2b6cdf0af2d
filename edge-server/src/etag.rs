//! Entity tags: computed from a digest, and compared with `If-None-Match`.

use http::{HeaderMap, HeaderValue, header};

/// Returns the strong ETag of content with this SHA-256 digest.
pub(crate) fn from_digest(sha256: &[u8]) -> HeaderValue {
    let etag = format!("\"{}\"", hex::encode(&sha256[..16]));
    // Quoted hexadecimal digits are a valid header value.
    HeaderValue::from_str(&etag).unwrap_or(HeaderValue::from_static("\"\""))
}

/// Returns the headers of a 304: those of the response without the ones that never change while the content does not.
pub(crate) fn not_modified_headers(mut headers: HeaderMap) -> HeaderMap {
    for name in [header::CONTENT_TYPE, header::X_CONTENT_TYPE_OPTIONS] {
        headers.remove(name);
    }
    headers
}

/// Returns whether `If-None-Match` of a request lists `etag`.
pub(crate) fn is_listed(headers: &HeaderMap, etag: &HeaderValue) -> bool {
    is_listed_in(headers.get_all(header::IF_NONE_MATCH).iter().map(HeaderValue::as_bytes), etag)
}

/// Returns whether these values of `If-None-Match` list `etag` (weak comparison: RFC 9110, 13.1.2).
pub(crate) fn is_listed_in<'a>(mut values: impl Iterator<Item = &'a [u8]>, etag: &HeaderValue) -> bool {
    let etag = etag.as_bytes();
    values.any(|value| {
        let mut listed = value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
        value == etag || listed.any(|one| one.strip_prefix(b"W/").unwrap_or(one) == etag || one == b"*")
    })
}
