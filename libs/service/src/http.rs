//! The HTTP server of the inner services: axum on hyper, with what axum's own `serve` lacks: a timeout of the request
//! headers, one of clients that stop reading, and a drain on shutdown that loses no request.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{ConnectInfo, Request};
use axum::response::Response;
use http::{HeaderValue, Version, header};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::SetOnce;
use tokio::time::Instant;
use tokio_io_timeout::TimeoutStream;
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;

use crate::{Accepting, Drain, Shutdown};

/// Timeout of a request's headers. A slower client is disconnected.
pub const HEADER_READ_TIMEOUT: Duration = Duration::from_secs(15);

/// Time that a client may leave a response unread once the buffers of the connection are full. Then it is disconnected, so
/// that its response is held no longer. The edge gives up on its own clients after the same time.
pub const WRITE_STALL_TIMEOUT: Duration = Duration::from_secs(60);

/// Serves `app` over HTTP/1 and cleartext HTTP/2 until `shutdown`, then drains the connections. Each request has the
/// `ConnectInfo<SocketAddr>` of its peer. Failed accepts are retried, as axum's listener does.
pub async fn serve(
    listener: TcpListener,
    app: Router,
    shutdown: Shutdown,
    drain: Drain,
) -> anyhow::Result<()> {
    serve_with_stall_timeout(listener, app, shutdown, drain, WRITE_STALL_TIMEOUT).await
}

/// Like [`serve`], with another timeout than [`WRITE_STALL_TIMEOUT`].
pub async fn serve_with_stall_timeout(
    listener: TcpListener,
    app: Router,
    shutdown: Shutdown,
    drain: Drain,
    stall_timeout: Duration,
) -> anyhow::Result<()> {
    let mut server = auto::Builder::new(TokioExecutor::new());
    server.http1().timer(TokioTimer::new()).header_read_timeout(HEADER_READ_TIMEOUT);
    server.http2().timer(TokioTimer::new()).keep_alive_interval(Duration::from_secs(30));
    let server = Arc::new(server);
    let stages = Stages { draining: shutdown.clone(), closing: Shutdown::new(), aborting: Shutdown::new() };
    let connections = TaskTracker::new();

    let mut accepting = Accepting::new(listener, drain, &shutdown);
    while let Some((stream, peer)) = accepting.next().await {
        let connection =
            serve_connection(Arc::clone(&server), app.clone(), stream, peer, stall_timeout, stages.clone());
        connections.spawn(connection);
    }
    stages.closing.request();
    connections.close();
    if tokio::time::timeout(drain.timeout, connections.wait()).await.is_err() {
        tracing::warn!("closed connections with requests still running after the drain timeout");
        stages.aborting.request();
        connections.wait().await;
    }
    Ok(())
}

/// The stages of a server's shutdown.
#[derive(Clone)]
struct Stages {
    /// Each response asks its client to close the connection.
    draining: Shutdown,
    /// Idle connections are closed.
    closing: Shutdown,
    /// All connections are closed.
    aborting: Shutdown,
}

impl Stages {
    /// Waits until a connection is to be closed once it is idle. `version` is that of its first request.
    async fn close_when_idle(&self, version: &SetOnce<Version>, accepted: Instant) {
        self.draining.requested().await;
        let is_http2 = async {
            if *version.wait().await < Version::HTTP_2 {
                std::future::pending::<()>().await;
            }
        };
        let is_closing = async {
            self.closing.requested().await;
            let deadline = Drain::first_request_deadline(accepted);
            let _elapsed = tokio::time::timeout_at(deadline, version.wait()).await;
        };
        tokio::select! {
            // Over HTTP/2 the server announces the end of the connection, so that no request meets it.
            () = is_http2 => {}
            () = is_closing => {}
        }
    }
}

/// Serves the requests of a connection, from the first to the last.
async fn serve_connection(
    server: Arc<auto::Builder<TokioExecutor>>,
    app: Router,
    stream: TcpStream,
    peer: SocketAddr,
    stall_timeout: Duration,
    stages: Stages,
) {
    let accepted = Instant::now();
    // Responses are small and written whole. Waiting to fill a packet would only delay them.
    let _best_effort = stream.set_nodelay(true);
    let version = Arc::new(SetOnce::new());
    let (of_first, of_connection, draining) =
        (Arc::clone(&version), Arc::clone(&version), stages.draining.clone());
    let app = app
        .map_request(move |mut request: Request<_>| {
            let _known = of_first.set(request.version());
            request.extensions_mut().insert(ConnectInfo::<SocketAddr>(peer));
            request
        })
        .map_response(move |mut response: Response| {
            if draining.is_requested()
                && of_connection.get().is_some_and(|version| *version < Version::HTTP_2)
            {
                response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
            response
        });
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(stall_timeout));
    let stream = TokioIo::new(Box::pin(stream));
    let mut connection = pin!(server.serve_connection_with_upgrades(stream, TowerToHyperService::new(app)));
    let mut close = pin!(stages.close_when_idle(&version, accepted));
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = &mut close => {
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                ended = connection => ended,
                () = stages.aborting.requested() => return,
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "connection ended early");
    }
}
