//! The API for agents that speak MCP: `POST /api/mcp`, Streamable HTTP without sessions, answered in JSON.
//!
//! The messages have rmcp's types; why its server is not used: `docs/0015-mcp.md`.

mod body;
mod call;
mod endpoint;
mod era;
mod gateway;
mod message;
mod metadata;
mod methods;
mod server;
mod tools;

use std::sync::Arc;

use axum::Router;
use axum::routing::post;
use web::CompletedRequest;

use self::gateway::Gateway;
use self::server::Server;
use crate::App;
use crate::catalog::Catalog;

/// The routes. Tools call operations through `router`, which holds the whole API without a frame; `count` records each call.
pub(crate) fn routes(
    app: &App,
    router: Router,
    count: fn(&CompletedRequest<'_>),
    catalog: Arc<Catalog>,
) -> Router<App> {
    let gateway = Gateway::new(router, count, app.addresses.base());
    let server = Arc::new(Server::new(app, gateway, catalog));
    let endpoint = Router::new().route(metadata::PATH, post(endpoint::handle)).with_state(server);
    endpoint.merge(metadata::routes(app))
}
