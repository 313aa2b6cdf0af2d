//! The URLs that need no key: those that start a run, and those that resume one. They are not part of the API document,
//! because each is of one automation or run; the view of an automation has its `triggerUrl`.

mod http_answer;
mod http_trigger;
mod resume;
mod resume_page;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::{any, get};

use crate::App;

/// The routes of all public URLs.
pub(in crate::api) fn routes() -> Router<App> {
    let resume = get(resume::show).post(resume::resume);
    Router::new()
        .route("/api/automations/run/{id}/{slug}", any(http_trigger::run))
        .route("/api/automations/resume/{runId}/{number}/{token}", resume)
        .layer(DefaultBodyLimit::max(automation::http_trigger::BODY_BYTES_MAX))
}
