//! The script that counted pages load, and nothing else of ours: it says that a page was viewed.

use axum::response::{IntoResponse, Response};
use http::header;

const SCRIPT: &str = include_str!("tracker.js");

/// `GET /_wr/t.js`. Browsers keep it for an hour, so that a new one is everywhere soon.
pub(crate) async fn show() -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/javascript; charset=utf-8"),
        (header::CACHE_CONTROL, "public, max-age=3600"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (headers, SCRIPT).into_response()
}
