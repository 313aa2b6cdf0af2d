//! Tells clients how the endpoint wants to be called (RFC 9728). There is no authorization server: a key is made by a call.

use axum::Router;
use axum::response::IntoResponse;
use axum::routing::get;
use http::header;
use serde_json::{Value, json};

use crate::App;

/// Where the endpoint is.
pub(super) const PATH: &str = "/api/mcp";
/// Where its metadata is.
pub(super) const METADATA_PATH: &str = "/.well-known/oauth-protected-resource/api/mcp";
/// Where older clients look for it.
const ROOT_METADATA_PATH: &str = "/.well-known/oauth-protected-resource";

/// The routes of the metadata.
pub(super) fn routes(app: &App) -> Router<App> {
    let document = document(app.addresses.base()).to_string();
    let answer = async move || {
        let headers = [(header::CONTENT_TYPE, "application/json"), (header::CACHE_CONTROL, "max-age=3600")];
        (headers, document).into_response()
    };
    Router::new().route(METADATA_PATH, get(answer.clone())).route(ROOT_METADATA_PATH, get(answer))
}

fn document(base: &str) -> Value {
    json!({
        "resource": format!("{base}{PATH}"),
        "resource_name": "Web Runtime",
        "resource_documentation": format!("{base}/llms.txt"),
        "bearer_methods_supported": ["header"],
        "key_creation": {
            "method": "POST",
            "url": format!("{base}/api/trial"),
            "description": "Send no body and no key. The answer's `key` is the bearer token.",
        },
    })
}
