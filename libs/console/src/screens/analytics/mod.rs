//! Visits of a site: figures compared with the period before, a chart, and what they consist of.

mod chart;
mod dropped;
mod figures;
mod filters;
mod funnels;
mod mover;
mod panels;
mod period;
mod retention;
mod settings;
mod show;
mod site_page;
mod sites;
mod visits;

use axum::Router;
use axum::routing::{get, post};

use crate::state::Console;

/// Returns the routes of these screens.
pub(crate) fn routes() -> Router<Console> {
    Router::new()
        .route("/console/analytics", get(sites::list).post(sites::create))
        .route("/console/analytics/{id}", get(show::show))
        .route("/console/analytics/{id}/filter", get(show::add_filter))
        .route("/console/analytics/{id}/now", get(show::count_active))
        .route("/console/analytics/{id}/visits", get(visits::list))
        .route("/console/analytics/{id}/funnels", get(funnels::show))
        .route("/console/analytics/{id}/retention", get(retention::show))
        .route("/console/analytics/{id}/settings", get(settings::show).post(settings::update))
        .route("/console/analytics/{id}/delete", post(settings::delete))
}
