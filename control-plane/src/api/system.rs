//! The API's own description.

use aide::openapi::OpenApi;
use axum::Router;
use axum::routing::get;
use web::Resource;

use crate::App;

/// Has no routes: [`document_route`] serves the finished document.
pub(super) fn resource() -> Resource<App> {
    Resource::new("system")
}

/// `GET /api/openapi.json`.
pub(super) fn document_route(document: &OpenApi) -> Router<App> {
    let text = serde_json::to_string_pretty(document).unwrap_or_default();
    let headers = [("content-type", "application/json"), ("cache-control", "no-cache")];
    Router::new().route("/api/openapi.json", get(async move || (headers, text)))
}
