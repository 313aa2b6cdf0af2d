//! Webhooks, and the deliveries of one.

mod change;
mod curl;
mod day_strip;
mod deliveries;
mod delivery;
mod edit;
mod list;
mod page_path;
mod show;
mod view;
mod write;

use axum::Router;
use axum::routing::{get, post};

use crate::state::Console;

/// Returns the routes of these screens.
pub(crate) fn routes() -> Router<Console> {
    Router::new()
        .route("/console/webhooks", get(list::list).post(write::create))
        .route("/console/webhooks/{id}", get(show::show))
        .route("/console/webhooks/{id}/edit", get(edit::edit).post(change::save))
        // A new sign-in may lead back to the address of a refused post.
        .route("/console/webhooks/{id}/secret", get(edit::edit).post(change::rotate_secret))
        .route("/console/webhooks/{id}/switch", post(change::switch))
        .route("/console/webhooks/{id}/delete", post(change::delete))
        .route("/console/webhooks/{id}/test", post(write::test))
        .route("/console/webhooks/{id}/retry", post(write::retry_failed))
        .route("/console/webhooks/{id}/deliveries/{delivery}", get(delivery::show))
        .route("/console/webhooks/{id}/deliveries/{delivery}/retry", post(write::retry))
}
