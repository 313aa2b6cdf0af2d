//! The collector's server without the collector: reads a request as it does, answers 204, and forgets it. What the
//! collector is measured against (`tests/bench/collect.py`).

use axum::Router;
use axum::body::Bytes;
use axum::routing::post;
use http::{HeaderMap, StatusCode};
use service::config::Listen;
use service::{Listeners, Shutdown};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:0".to_owned());
    let listen = Listen { main: address.parse()?, ..Listen::default() };
    let listener = Listeners::bind(&listen)?.main;
    let router = Router::new().route("/api/collect", post(nothing));
    service::http::serve(listener, router, Shutdown::new()).await
}

async fn nothing(_headers: HeaderMap, _body: Bytes) -> StatusCode {
    StatusCode::NO_CONTENT
}
