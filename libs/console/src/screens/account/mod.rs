//! The account: plan, usage, sessions, recipients of mail, time zone, activity.

use axum::Router;

use crate::state::Console;

/// Returns the routes of these screens.
pub(crate) fn routes() -> Router<Console> {
    Router::new()
}
