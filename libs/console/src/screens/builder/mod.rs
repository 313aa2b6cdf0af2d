//! The form builder with its live preview.

mod draft;
mod field_problems;
mod preview;
mod references;
mod show;
mod start;
mod write;

use axum::Router;
use axum::routing::{get, post};
use contract::form_draft;

use crate::state::Console;

/// Returns the routes of these screens.
pub(crate) fn routes() -> Router<Console> {
    Router::new()
        .route("/console/forms/new", get(start::start).post(write::create))
        .route("/console/forms/{id}/edit", get(show::edit).post(write::update))
        .route(form_draft::PATH, post(preview::answer))
}
