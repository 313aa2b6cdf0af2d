//! The HTTP server of the inner services: axum on hyper, with three limits that axum's own `serve` lacks: a timeout of
//! the request headers, one of clients that stop reading, and one of open connections at shutdown.

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::extract::{ConnectInfo, Request};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio_io_timeout::TimeoutStream;
use tower::ServiceExt as _;

use crate::Shutdown;

/// Timeout of a request's headers. A slower client is disconnected.
pub const HEADER_READ_TIMEOUT: Duration = Duration::from_secs(15);

/// Time that a client may leave a response unread once the buffers of the connection are full. Then it is disconnected, so
/// that its response is held no longer. The edge gives up on its own clients after the same time.
pub const WRITE_STALL_TIMEOUT: Duration = Duration::from_secs(60);

/// Time for running requests after shutdown is requested. Later, their connections are closed.
pub const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);

/// Serves `app` over HTTP/1 and cleartext HTTP/2 until `shutdown`, then drains running requests for at most
/// [`DRAIN_TIMEOUT`]. Each request has the `ConnectInfo<SocketAddr>` of its peer. Failed accepts are retried, as axum's
/// listener does.
pub async fn serve(listener: TcpListener, app: Router, shutdown: Shutdown) -> anyhow::Result<()> {
    serve_with_stall_timeout(listener, app, shutdown, WRITE_STALL_TIMEOUT).await
}

/// Like [`serve`], with another timeout than [`WRITE_STALL_TIMEOUT`].
pub async fn serve_with_stall_timeout(
    mut listener: TcpListener,
    app: Router,
    shutdown: Shutdown,
    stall_timeout: Duration,
) -> anyhow::Result<()> {
    let mut server = auto::Builder::new(TokioExecutor::new());
    server.http1().timer(TokioTimer::new()).header_read_timeout(HEADER_READ_TIMEOUT);
    server.http2().timer(TokioTimer::new()).keep_alive_interval(Duration::from_secs(30));
    let connections = GracefulShutdown::new();

    while let Some((stream, peer)) = shutdown.unless_requested(accept(&mut listener)).await {
        // Responses are small and written whole. Waiting to fill a packet would only delay them.
        let _best_effort = stream.set_nodelay(true);
        let app = app.clone().map_request(move |mut request: Request<_>| {
            request.extensions_mut().insert(ConnectInfo::<SocketAddr>(peer));
            request
        });
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(stall_timeout));
        let stream = TokioIo::new(Box::pin(stream));
        let connection = server.serve_connection_with_upgrades(stream, TowerToHyperService::new(app));
        let connection = connections.watch(connection.into_owned());
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "connection ended early");
            }
        });
    }
    drop(listener);
    if tokio::time::timeout(DRAIN_TIMEOUT, connections.shutdown()).await.is_err() {
        tracing::warn!("closed connections with requests still running after the drain timeout");
    }
    Ok(())
}

async fn accept(listener: &mut TcpListener) -> (tokio::net::TcpStream, SocketAddr) {
    // The trait's accept retries, and pauses when file descriptors run out; the socket's own does not.
    axum::serve::Listener::accept(listener).await
}
