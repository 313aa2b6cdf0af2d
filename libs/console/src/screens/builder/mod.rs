//! The form builder with its live preview.

use axum::Router;

use crate::state::Console;

/// Returns the routes of these screens.
pub(crate) fn routes() -> Router<Console> {
    Router::new()
}
