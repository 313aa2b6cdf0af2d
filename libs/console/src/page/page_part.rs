//! Parts of a page: the script asks for one by its selector, and polls texts with `If-None-Match`.

use axum::response::{IntoResponse, Response};
use http::{HeaderName, HeaderValue, StatusCode, header};

use crate::content_hash::content_hash;
use crate::viewer::Viewer;

/// The header that names a part by the selector of its element: `#pane`.
pub(super) const HEADER: HeaderName = HeaderName::from_static("x-part");

/// Returns the block that a request asks for. The block of a part has the id of its element as its name.
pub(super) fn requested(viewer: &Viewer) -> Option<&str> {
    let name = viewer.header(HEADER)?.strip_prefix('#')?;
    (!name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')).then_some(name)
}

/// Returns the response with an entity tag, or 304 if the client has this content already.
pub(super) fn with_entity_tag(viewer: &Viewer, mut response: Response, content: &str) -> Response {
    let tag = format!("\"{}\"", content_hash(content));
    let is_known = viewer.header(header::IF_NONE_MATCH) == Some(&tag);
    if is_known {
        response = StatusCode::NOT_MODIFIED.into_response();
    }
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response
}
