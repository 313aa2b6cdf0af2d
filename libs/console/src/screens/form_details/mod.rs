//! A form's own page: where it is, how to embed it, whether it is open, its results, and its end.

mod plain_form;
mod results;
mod show;
mod snippets;
mod write;

use axum::Router;
use axum::routing::{get, post};

use crate::state::Console;

/// Returns the routes of this screen.
pub(crate) fn routes() -> Router<Console> {
    Router::new()
        .route("/console/forms/{id}/details", get(show::show))
        .route("/console/forms/{id}/close", post(write::close))
        .route("/console/forms/{id}/open", post(write::open))
        .route("/console/forms/{id}/delete", post(write::delete))
}
