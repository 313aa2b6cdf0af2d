//! The submissions of a form: a list, and the one that is open with what it caused.

mod answer_input;
mod edit;
mod effects;
mod erase;
mod mark;
mod page_path;
mod retry;
mod show;
mod view;

use axum::Router;
use axum::routing::{get, post};

use crate::state::Console;

pub(super) use view::SubmissionView;

/// Returns the routes of these screens.
pub(crate) fn routes() -> Router<Console> {
    Router::new()
        .route("/console/forms/{id}", get(show::list))
        .route("/console/forms/{id}/mark", post(mark::mark))
        .route("/console/forms/{id}/erase", get(erase::ask).post(erase::erase))
        .route("/console/forms/{id}/submissions/new", get(edit::new).post(edit::create))
        .route("/console/forms/{id}/submissions/{submission}", get(show::read))
        .route("/console/forms/{id}/submissions/{submission}/edit", get(edit::show).post(edit::update))
        .route("/console/forms/{id}/submissions/{submission}/retry", post(retry::retry))
}
