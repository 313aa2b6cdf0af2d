//! A baseline for `tests/bench/collect.py`: the collector's server without a pipeline. It reads a request, responds with
//! 204 and discards the body.

use axum::Router;
use axum::body::Bytes;
use axum::routing::post;
use http::{HeaderMap, StatusCode};
use service::config::Listen;
use service::{Drain, Listeners, Shutdown};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:0".to_owned());
    let listen = Listen { main: address.parse()?, ..Listen::default() };
    let listener = Listeners::bind(&listen)?.main;
    let router = Router::new().route("/api/collect", post(discard));
    service::http::serve(listener, router, Shutdown::new(), Drain::default()).await
}

async fn discard(_headers: HeaderMap, _body: Bytes) -> StatusCode {
    StatusCode::NO_CONTENT
}
