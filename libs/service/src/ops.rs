//! The ops endpoints: liveness, readiness and metrics. Their port takes no user traffic and is not reachable from outside.

use anyhow::Context as _;
use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::{StatusCode, header};

use crate::{Drain, ListeningSocket, Readiness, Shutdown, http as server, metrics};

/// Serves `/healthz`, `/readyz` and `/metrics` until `shutdown`.
///
/// Start it with [`crate::Lifecycle::spawn_last`] and [`crate::Lifecycle::drained`], so that `/readyz` returns 503 while
/// the rest of the service drains.
pub async fn serve(socket: ListeningSocket, readiness: Readiness, shutdown: Shutdown) -> anyhow::Result<()> {
    server::serve(socket, router(readiness), shutdown, Drain::default()).await.context("ops endpoints")
}

/// The three endpoints as a router, for a service that adds internal ones of its own.
pub fn router(readiness: Readiness) -> Router {
    Router::new()
        .route("/healthz", get(|| async { "alive\n" }))
        .route("/readyz", get(ready))
        .route("/metrics", get(metrics_text))
        .with_state(readiness)
}

async fn ready(State(readiness): State<Readiness>) -> Response {
    let report = readiness.report();
    let status = if report.ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let body = serde_json::to_string(&report).unwrap_or_default();
    (status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
}

async fn metrics_text(State(readiness): State<Readiness>) -> Response {
    readiness.report().record();
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], metrics::render()).into_response()
}
