//! What a body must be before it is parsed: JSON, not compressed, and complete.

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRequest, Request};
use http::{HeaderMap, StatusCode, header};

use crate::{Code, Problem};

/// Reads the whole body.
pub(super) async fn read<S: Send + Sync>(request: Request, state: &S) -> Result<Bytes, Problem> {
    Bytes::from_request(request, state).await.map_err(refused)
}

/// Requires `Content-Type: application/json`, and no compression.
pub(super) fn check_is_json(headers: &HeaderMap) -> Result<(), Problem> {
    check_not_compressed(headers)?;
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if kind.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let detail = format!("this endpoint accepts JSON, not `{kind}`");
    Err(Problem::new(Code::UnsupportedMediaType, detail).hint("send `Content-Type: application/json`"))
}

/// Rejects a compressed body (RFC 9110, 15.5.16): its parser would report gibberish instead of the cause, and a small one
/// could unpack to gigabytes.
pub fn check_not_compressed(headers: &HeaderMap) -> Result<(), Problem> {
    let codings = headers.get_all(header::CONTENT_ENCODING);
    let is_plain = |value: &http::HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"identity");
    let Some(coding) = codings.iter().find(|value| !value.is_empty() && !is_plain(value)) else {
        return Ok(());
    };
    let detail =
        format!("the body must not be compressed, not even with `{}`", coding.to_str().unwrap_or("?"));
    Err(Problem::new(Code::UnsupportedMediaType, detail).hint("send it without `Content-Encoding`"))
}

fn refused(rejection: BytesRejection) -> Problem {
    if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
        return Problem::new(Code::PayloadTooLarge, "the body exceeds the limit of this endpoint");
    }
    Problem::malformed_json("the body could not be read completely")
}
