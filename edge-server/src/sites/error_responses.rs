//! Plain-text responses for requests that no page answers.

use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};
use store::read_pool::ReadError;

/// `Retry-After` in seconds when a lookup fails.
const RETRY_AFTER_SECONDS: u16 = 2;

/// Returns a 404.
pub(crate) fn not_found() -> Response {
    plain_error(StatusCode::NOT_FOUND, "There is no page at this address.\n")
}

/// Returns the 405 for requests other than GET and HEAD.
pub(crate) fn method_not_allowed() -> Response {
    (StatusCode::METHOD_NOT_ALLOWED, [(header::ALLOW, "GET, HEAD")]).into_response()
}

/// Returns the 503 for a lookup that failed.
pub(crate) fn lookup_failed(error: ReadError) -> Response {
    match error {
        // The failed query has logged a warning; other waiting requests would only repeat it.
        ReadError::Unavailable => tracing::debug!("a page that is not cached can't be looked up"),
        ReadError::Database(error) => tracing::warn!(%error, "a page that is not cached can't be looked up"),
    }
    busy()
}

/// Returns the 503 for a page that can't be rendered in time.
pub(crate) fn busy() -> Response {
    unavailable("This page can't be shown right now; try again shortly.\n")
}

/// Returns a 503 with `Retry-After`.
pub(crate) fn unavailable(text: &'static str) -> Response {
    let mut response = plain_error(StatusCode::SERVICE_UNAVAILABLE, text);
    response.headers_mut().insert(header::RETRY_AFTER, RETRY_AFTER_SECONDS.into());
    response
}

/// Returns a response that no proxy may cache.
pub(crate) fn plain_error(status: StatusCode, text: &'static str) -> Response {
    (status, [(header::CACHE_CONTROL, "no-store")], text).into_response()
}
