//! `/`: leads signed-in people to the console, and says to others what this is and how to begin.

use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};

use crate::page::{Page, Section};
use crate::state::Console;
use crate::viewer::Viewer;

/// Shows the page, or leads to the console.
pub(crate) async fn show(State(console): State<Console>, viewer: Viewer) -> Response {
    let account = console.account(&viewer).await;
    if account.is_ok() {
        return Redirect::to("/console").into_response();
    }
    // A visitor needs no account here, so the answer is not part of the page.
    Page::new(Section::Other, "welcome.html").respond(&console, &viewer, &Ok(serde_json::Value::Null))
}
