//! The page for an address that has none.

use axum::response::Response;
use http::StatusCode;

use crate::api_client::Refusal;
use crate::page::Page;
use crate::state::Console;
use crate::viewer::Viewer;

/// Returns the page that says so.
pub(crate) async fn not_found(console: &Console, viewer: &Viewer) -> Response {
    let detail = "There is no page at this address. If a colleague sent you the link, it may belong to another account.";
    let refusal = Refusal::new(StatusCode::NOT_FOUND, "not_found", "Not found", detail);
    Page::refused(&refusal).respond(console, viewer, &console.account(viewer).await)
}
