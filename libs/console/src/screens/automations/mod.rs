//! Automations: the list, one with its definition, its runs, and what changes them.

mod change;
mod create;
mod definition_view;
mod edit;
mod json_lines;
mod json_view;
mod list;
mod page_path;
mod presets;
mod run;
mod run_view;
mod runs;
mod schedule_words;
mod show;

use axum::Router;
use axum::routing::{get, post};

use crate::state::Console;

/// Returns the routes of these screens.
pub(crate) fn routes() -> Router<Console> {
    Router::new()
        .route("/console/automations", get(list::list).post(create::create))
        .route("/console/automations/{id}", get(show::show))
        .route("/console/automations/{id}/edit", get(edit::edit).post(edit::save))
        .route("/console/automations/{id}/variables", post(edit::save_variables))
        .route("/console/automations/{id}/switch", post(change::switch))
        .route("/console/automations/{id}/test", post(change::test))
        .route("/console/automations/{id}/delete", post(change::delete))
        .route("/console/automations/{id}/runs", get(runs::list))
        .route("/console/automations/{id}/runs/{run}", get(run::show))
        .route("/console/automations/{id}/runs/{run}/again", post(run::run_again))
        .route("/console/automations/{id}/runs/{run}/cancel", post(run::cancel))
}
