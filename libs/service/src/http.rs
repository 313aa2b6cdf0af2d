//! The HTTP server of the inner services: axum on hyper, with what axum's own `serve` lacks: a timeout of the request
//! headers, one of clients that stop reading, and a drain on shutdown that loses no request.

mod activity;

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpStream;
use tokio::time::timeout_at;
use tokio_io_timeout::TimeoutStream;
use tokio_util::task::TaskTracker;

use activity::{Activity, CountedApp};

use crate::{Accepting, Drain, Draining, ListeningSocket, Shutdown};

/// Timeout of a request's headers. A slower client is disconnected.
pub const HEADER_READ_TIMEOUT: Duration = Duration::from_secs(15);

/// Time that a client may leave a response unread once the buffers of the connection are full. Then it is disconnected, so
/// that its response is held no longer. The edge gives up on its own clients after the same time.
pub const WRITE_STALL_TIMEOUT: Duration = Duration::from_secs(60);

/// Serves `app` over HTTP/1 and cleartext HTTP/2 until `shutdown`, then drains the connections. Each request has the
/// `ConnectInfo<SocketAddr>` of its peer. Failed accepts are retried, as axum's listener does.
pub async fn serve(
    socket: impl Into<ListeningSocket>,
    app: Router,
    shutdown: Shutdown,
    drain: Drain,
) -> anyhow::Result<()> {
    serve_with_stall_timeout(socket, app, shutdown, drain, WRITE_STALL_TIMEOUT).await
}

/// Like [`serve`], with another timeout than [`WRITE_STALL_TIMEOUT`].
pub async fn serve_with_stall_timeout(
    socket: impl Into<ListeningSocket>,
    app: Router,
    shutdown: Shutdown,
    drain: Drain,
    stall_timeout: Duration,
) -> anyhow::Result<()> {
    let mut http = auto::Builder::new(TokioExecutor::new());
    http.http1().timer(TokioTimer::new()).header_read_timeout(HEADER_READ_TIMEOUT);
    http.http2().timer(TokioTimer::new()).keep_alive_interval(Duration::from_secs(30));
    let draining = Draining::new(drain, &shutdown);
    let mut accepting = Accepting::new(socket, &draining)?;
    let server = Arc::new(Server { http, app, stall_timeout, draining, aborting: Shutdown::new() });
    let connections = TaskTracker::new();
    while let Some((stream, peer)) = accepting.next().await {
        let server = Arc::clone(&server);
        connections.spawn(async move { server.serve_connection(stream, peer).await });
    }
    connections.close();
    if timeout_at(server.draining.deadline(), connections.wait()).await.is_err() {
        tracing::warn!("closed connections with requests still running after the drain timeout");
        server.aborting.request();
        connections.wait().await;
    }
    Ok(())
}

/// What all connections share.
struct Server {
    http: auto::Builder<TokioExecutor>,
    app: Router,
    stall_timeout: Duration,
    draining: Draining,
    /// All connections are closed.
    aborting: Shutdown,
}

impl Server {
    /// Serves the requests of a connection, from the first to the last.
    async fn serve_connection(&self, stream: TcpStream, peer: SocketAddr) {
        // Responses are small and written whole. Waiting to fill a packet would only delay them.
        let _best_effort = stream.set_nodelay(true);
        let activity = Activity::new(&self.draining);
        let app = CountedApp { app: self.app.clone(), peer, activity: Arc::clone(&activity) };
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(self.stall_timeout));
        let stream = TokioIo::new(Box::pin(stream));
        let service = TowerToHyperService::new(app);
        let mut connection = pin!(self.http.serve_connection_with_upgrades(stream, service));
        let closable = pin!(activity.closable());
        let ended = tokio::select! {
            // First the connection: a request that has arrived is served.
            biased;
            ended = connection.as_mut() => ended,
            () = closable => {
                connection.as_mut().graceful_shutdown();
                tokio::select! {
                    ended = connection => ended,
                    () = self.aborting.requested() => return,
                }
            }
            () = self.aborting.requested() => return,
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "connection ended early");
        }
    }
}
