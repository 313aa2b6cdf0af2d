//! Proxies requests to the control plane and the collector.

use axum::extract::{Request, State};
use axum::response::Response;

use crate::state::EdgeState;

pub(crate) async fn to_control_plane(State(state): State<EdgeState>, request: Request) -> Response {
    let ip = state.trusted_proxies.client_ip(request.headers(), request.extensions());
    state.inner.control_plane(ip, request).await
}

pub(crate) async fn to_collector(State(state): State<EdgeState>, request: Request) -> Response {
    let ip = state.trusted_proxies.client_ip(request.headers(), request.extensions());
    state.inner.collector(ip, request).await
}
