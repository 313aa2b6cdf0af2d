//! The inner services' HTTP server: axum behind hyper, with the bounds axum's own `serve` lacks, a limit on how
//! long request headers may dribble in and on how long open connections may hold up a shutdown.

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::extract::{ConnectInfo, Request};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tower::ServiceExt as _;

use crate::Shutdown;

/// A client that hasn't sent its request headers by then is cut off.
pub const HEADER_READ_TIMEOUT: Duration = Duration::from_secs(15);

/// Requests still running this long after shutdown was asked for are cut off.
pub const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);

/// Serves `app` over HTTP/1 and cleartext HTTP/2 until `shutdown`, then lets open requests end for at most
/// [`DRAIN_TIMEOUT`]. Each request carries `ConnectInfo<SocketAddr>` of its peer.
///
/// # Errors
/// None at present: failing accepts are retried, as axum's listener does.
pub async fn serve(mut listener: TcpListener, app: Router, shutdown: Shutdown) -> anyhow::Result<()> {
    let mut server = auto::Builder::new(TokioExecutor::new());
    server.http1().timer(TokioTimer::new()).header_read_timeout(HEADER_READ_TIMEOUT);
    server.http2().timer(TokioTimer::new()).keep_alive_interval(Duration::from_secs(30));
    let connections = GracefulShutdown::new();

    while let Some((stream, peer)) = shutdown.unless_requested(accept(&mut listener)).await {
        // Answers are small and written whole; waiting to fill a packet only delays them.
        let _best_effort = stream.set_nodelay(true);
        let app = app.clone().map_request(move |mut request: Request<_>| {
            request.extensions_mut().insert(ConnectInfo::<SocketAddr>(peer));
            request
        });
        let connection =
            server.serve_connection_with_upgrades(TokioIo::new(stream), TowerToHyperService::new(app));
        let connection = connections.watch(connection.into_owned());
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "connection ended early");
            }
        });
    }
    drop(listener);
    if tokio::time::timeout(DRAIN_TIMEOUT, connections.shutdown()).await.is_err() {
        tracing::warn!("requests still running after the drain time were cut off");
    }
    Ok(())
}

async fn accept(listener: &mut TcpListener) -> (tokio::net::TcpStream, SocketAddr) {
    // The trait's accept, not the socket's own: it retries, and pauses when file descriptors run out.
    axum::serve::Listener::accept(listener).await
}
