//! The account: plan and usage, settings, sessions, the log of changes, and help.

mod activity;
mod activity_view;
mod help;
mod sessions;
mod settings;
mod show;

use axum::Router;
use axum::routing::{get, post};

use crate::state::Console;

/// Returns the routes of these screens.
pub(crate) fn routes() -> Router<Console> {
    Router::new()
        .route("/console/account", get(show::show))
        .route("/console/account/settings", post(settings::update))
        .route("/console/account/plan", post(settings::change_plan))
        .route("/console/account/sessions/end-others", post(sessions::end_others))
        .route("/console/account/sessions/{session}/end", post(sessions::end))
        .route("/console/account/activity", get(activity::list))
        .route("/console/help", get(help::show).post(help::create))
}
