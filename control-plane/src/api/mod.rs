//! The list of resources: every endpoint of the management API is reached from here.

mod account;
mod analytics;
mod deliveries;
mod forms;
mod pages;
mod submissions;
mod system;
mod trial;
mod webhooks;

use std::sync::Arc;

use aide::openapi::OpenApi;
use axum::Router;
use axum::middleware::from_fn_with_state;
use domain::Complaint;
use uuid::Uuid;
use web::{Code, Frame, Problem, Resource};

use crate::App;

const DESCRIPTION: &str = "Send HTML, get a live URL; describe a form, get a page, an embed and an endpoint; \
    with privacy-first analytics and signed webhooks. Start with POST /api/trial: it needs nothing.";

fn resources() -> Vec<Resource<App>> {
    vec![
        trial::resource(),
        account::resource(),
        pages::resource(),
        forms::resource(),
        submissions::resource(),
        webhooks::resource(),
        deliveries::resource(),
        analytics::resource(),
        system::resource(),
    ]
}

/// The API's document.
pub fn document() -> OpenApi {
    web::document_of("Web Runtime", DESCRIPTION, resources()).1
}

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
            let labels = [("route", answered.route), ("status", answered.status.as_str())];
            service::metrics::histogram("control_plane_request_answer_seconds")
                .record_elapsed(answered.elapsed, &labels);
        },
    };
    router
        .merge(system::document_route(&document))
        .route_layer(from_fn_with_state(app.clone(), crate::idempotency::once))
        .fallback(async || {
            Problem::new(Code::NotFound, "there is no such path; GET /api/openapi.json lists all")
        })
        .layer(from_fn_with_state(frame, web::frame))
        .with_state(app.clone())
}

/// Refuses ids in a body that are not the account's. `found` of the distinct `ids` are.
fn all_found(field: &str, noun: &str, ids: &[Uuid], found: u64) -> Result<(), Problem> {
    let distinct: std::collections::BTreeSet<_> = ids.iter().collect();
    if distinct.len() as u64 == found {
        return Ok(());
    }
    let message = format!("{field} must name {noun} of this account");
    Err(Problem::validation(vec![Complaint::new(field, "unknown_id", message)]))
}
