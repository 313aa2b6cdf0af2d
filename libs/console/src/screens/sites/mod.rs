//! Sites: deploys, pages with their versions, domains.

use axum::Router;

use crate::state::Console;

/// Returns the routes of these screens.
pub(crate) fn routes() -> Router<Console> {
    Router::new()
}
