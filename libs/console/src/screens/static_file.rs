//! Serves the style sheet, the script and the icon.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header;

use super::not_found;
use crate::state::Console;
use crate::viewer::Viewer;

/// Serves a file. Its address changes with its content, so browsers keep it forever.
pub(crate) async fn serve(State(console): State<Console>, viewer: Viewer) -> Response {
    let Some(file) = console.assets.static_files.find(viewer.path()) else {
        return not_found(&console, &viewer).await;
    };
    let headers = [
        (header::CONTENT_TYPE, file.content_type),
        (header::CACHE_CONTROL, "public, max-age=31536000, immutable"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    (headers, file.content).into_response()
}
