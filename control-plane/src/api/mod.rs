//! The list of resources: every endpoint of the management API is reached from here.

mod account;
mod analytics;
mod analytics_edits;
mod analytics_figures;
mod analytics_funnel;
mod analytics_retention;
mod analytics_views;
mod analytics_visits;
mod assets;
mod batch;
mod deletion;
mod deliveries;
mod deploys;
mod domains;
mod entries;
mod erasure;
mod exports;
mod folders;
mod form_edits;
mod form_links;
mod form_views;
mod forms;
mod help;
mod keys;
mod moves;
mod page_views;
mod pages;
mod recipients;
mod sought;
mod subdomains;
mod submission_edits;
mod submission_files;
mod submissions;
mod system;
mod trial;
mod upgrade;
mod versions;
mod webhook_edits;
mod webhook_reach;
mod webhook_secrets;
mod webhook_tests;
mod webhook_views;
mod webhooks;
mod workflows;

use std::sync::{Arc, LazyLock};

use aide::openapi::OpenApi;
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;
use service::metrics::HttpServerRequestDuration;
use web::{Answered, Code, Frame, Problem, Resource};

use crate::App;

const DESCRIPTION: &str = "Send HTML, get a live URL; describe a form, get a page, an embed and an endpoint; \
    with privacy-first analytics and signed webhooks. Start with POST /api/trial: it needs nothing.";

/// Of a request whose resource says nothing else.
const MAX_BODY_BYTES: usize = 1 << 20;

fn resources() -> Vec<Resource<App>> {
    vec![
        trial::resource(),
        account::resource(),
        help::resource(),
        keys::resource(),
        subdomains::resource(),
        domains::resource(),
        folders::resource(),
        assets::resource(),
        deploys::resource(),
        pages::resource(),
        entries::resource(),
        versions::resource(),
        forms::resource(),
        submissions::resource(),
        exports::resource(),
        erasure::resource(),
        workflows::resource(),
        webhooks::resource(),
        webhook_secrets::resource(),
        deliveries::resource(),
        analytics::resource(),
        system::resource(),
    ]
}

/// The API's document.
pub fn document() -> OpenApi {
    web::document_of("Web Runtime", DESCRIPTION, resources()).1
}

/// Kept, because the lookup by name would cost on every request.
static REQUEST_DURATION: LazyLock<HttpServerRequestDuration> =
    LazyLock::new(service::metrics::http_server_request_duration);

/// The API's router, with the frame around every request.
pub fn router(app: &App) -> Router {
    let (router, document) = web::document_of("Web Runtime", DESCRIPTION, resources());
    let ids = app.clone();
    let frame = Frame {
        new_request_id: Arc::new(move || ids.rng.uuid_v7(ids.clock.now()).simple().to_string()),
        continue_trace: |span, headers| {
            service::telemetry::continue_from(span, service::telemetry::extract(headers).as_deref());
        },
        count: |answered| {
            let Answered { method, route, status, elapsed } = *answered;
            REQUEST_DURATION.record(method, route, status, elapsed);
        },
    };
    router
        .merge(system::document_route(&document))
        .route_layer(crate::idempotency::IdempotencyLayer(app.clone()))
        .merge(crate::signin::routes(app))
        .fallback(async || {
            Problem::new(Code::NotFound, "there is no such path; GET /api/openapi.json lists all")
        })
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .layer(from_fn_with_state(frame, web::frame))
        .with_state(app.clone())
}
