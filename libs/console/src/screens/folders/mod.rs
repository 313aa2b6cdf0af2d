//! Folders: their list, what is in one, and what is added or removed.

mod choices;
mod list;
mod resource_kind;
mod show;
mod write;

use axum::Router;
use axum::routing::{get, post};

use crate::state::Console;

pub(super) use choices::choices;

/// Returns the routes of these screens.
pub(crate) fn routes() -> Router<Console> {
    Router::new()
        .route("/console/folders", get(list::list).post(list::create))
        .route("/console/folders/{id}", get(show::show).post(write::update))
        .route("/console/folders/{id}/organize", post(write::organize))
        .route("/console/folders/{id}/ungroup", post(write::ungroup))
        .route("/console/folders/{id}/delete", post(write::delete))
}
