//! The task of one connection: its handshake, the fast path, and hyper, until it ends.

use std::error::Error;
use std::future::poll_fn;
use std::io::{self, Cursor};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use hyper::rt::{Executor, Read, Write};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use socket2::SockRef;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use super::client_stream::ClientStream;
use super::coalescing_writer::CoalescingWriter;
use super::connections::{Connection, ConnectionGuard, Disposition};
use super::counting_writer::CountingWriter;
use super::fast_path::{Handoff, Protocol};
use super::service::EdgeService;
use crate::config::Connections;

/// Time without a TCP acknowledgement after which a client counts as gone.
const UNACKNOWLEDGED_TIMEOUT: Duration = Duration::from_secs(60);
/// Bytes that the operating system accepts beyond what it can send. With megabytes of it, a client that reads slowly
/// would look for minutes like one that does not read.
const UNSENT_BYTES: u32 = 128 * 1024;
/// Interval of HTTP/2 pings.
const PING_INTERVAL: Duration = Duration::from_secs(30);

/// Polls an HTTP/2 stream once at once, and spawns a task only if it has to wait. A cache hit never has to.
#[derive(Debug, Clone, Copy)]
struct EagerExecutor;

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for EagerExecutor {
    fn execute(&self, stream: F) {
        let mut stream = Box::pin(stream);
        // A no-op waker suffices, because the spawned task polls the stream again first.
        if stream.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
            tokio::spawn(stream);
        }
    }
}

/// hyper's servers, configured with the limits.
pub(super) struct Servers {
    /// Detects the HTTP version from the first bytes.
    any: auto::Builder<EagerExecutor>,
    http1: auto::Builder<EagerExecutor>,
    http2: auto::Builder<EagerExecutor>,
}

impl Servers {
    pub(super) fn new(limits: &Connections) -> Self {
        let any = server(limits);
        Self { http1: any.clone().http1_only(), http2: any.clone().http2_only(), any }
    }
}

fn server(limits: &Connections) -> auto::Builder<EagerExecutor> {
    let mut server = auto::Builder::new(EagerExecutor);
    // No timer for HTTP/1: the connection table times out missing heads.
    server.http1().max_buf_size(limits.max_header_bytes.try_into().unwrap_or(usize::MAX));
    server
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(limits.max_header_bytes)
        .max_concurrent_streams(limits.max_streams)
        .keep_alive_interval(PING_INTERVAL);
    server
}

/// Serves the requests of a connection, from the first to the last. `protocol` is known from a handshake.
pub(super) async fn serve_requests<S: ClientStream>(
    servers: &Servers,
    fast_path: bool,
    mut stream: S,
    protocol: Protocol,
    mut service: EdgeService,
    guard: &ConnectionGuard,
) {
    let handoff = if fast_path && protocol != Protocol::Http2 {
        service.serve_fast_path(&mut stream).await
    } else {
        Some(Handoff { protocol, ..Handoff::default() })
    };
    let Some(handoff) = handoff else { return };
    // Boxed, so that a connection on the fast path has no memory for hyper.
    Box::pin(serve_by_hyper(servers, stream, handoff, service, guard)).await;
}

/// Serves the requests that are left by hyper.
async fn serve_by_hyper<S: ClientStream>(
    servers: &Servers,
    stream: S,
    handoff: Handoff,
    service: EdgeService,
    guard: &ConnectionGuard,
) {
    let Handoff { unread, protocol } = handoff;
    let (reader, writer) = stream.into_halves();
    let writer = CountingWriter::new(writer, Arc::clone(&guard.connection));
    let reader = Cursor::new(unread).chain(reader);
    let ended = if protocol == Protocol::Http2 {
        let coalescing = CoalescingWriter::new(writer);
        let io = TokioIo::new(tokio::io::join(reader, coalescing.clone()));
        let connection = pin!(servers.http2.serve_connection(io, service));
        drive(connection, protocol, guard, |cx| coalescing.poll_send(cx)).await
    } else {
        let server = if protocol == Protocol::Http1 { &servers.http1 } else { &servers.any };
        let io = TokioIo::new(tokio::io::join(reader, writer));
        let connection = pin!(server.serve_connection(io, service));
        drive(connection, protocol, guard, |_| Poll::Ready(Ok(()))).await
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}

/// Awaits what precedes the first request. Returns `None` if the connection is to be closed before.
pub(super) async fn unless_closing<T>(connection: &Connection, work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    let mut waker = None;
    poll_fn(|cx| match connection.poll_disposition(&mut waker, cx) {
        Disposition::KeepOpen | Disposition::CloseAfterResponse => work.as_mut().poll(cx).map(Some),
        Disposition::CloseWhenIdle | Disposition::Abort => Poll::Ready(None),
    })
    .await
}

/// Polls hyper's connection to its end, calls `send` after each poll, and obeys the connection's disposition.
async fn drive<I>(
    mut connection: Pin<&mut auto::Connection<'_, I, EdgeService, EagerExecutor>>,
    protocol: Protocol,
    guard: &ConnectionGuard,
    mut send: impl FnMut(&mut Context<'_>) -> Poll<io::Result<()>>,
) -> Result<(), Box<dyn Error + Send + Sync>>
where
    I: Read + Write + Unpin + 'static,
{
    let (mut waker, mut is_closing) = (None, false);
    poll_fn(|cx| {
        // hyper is polled first: bytes that were read ahead mean that the connection is not idle.
        let mut polled = connection.as_mut().poll(cx);
        if polled.is_pending() {
            let closes = match guard.connection.poll_disposition(&mut waker, cx) {
                Disposition::KeepOpen => false,
                // Over HTTP/1 the response says so. Over HTTP/2 the server announces the end of the connection, so that no
                // request meets it; before the first request hyper would end it at once.
                Disposition::CloseAfterResponse => {
                    protocol == Protocol::Http2 && guard.connection.has_requests()
                }
                Disposition::CloseWhenIdle => true,
                Disposition::Abort => return Poll::Ready(Ok(())),
            };
            if closes && !is_closing {
                is_closing = true;
                connection.as_mut().graceful_shutdown();
                polled = connection.as_mut().poll(cx);
            }
        }
        match send(cx) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error.into())),
            _sent_or_pending => polled,
        }
    })
    .await
}

pub(super) fn set_socket_options(stream: &TcpStream) {
    // Responses are written whole, so Nagle's algorithm would only delay them.
    let _best_effort = stream.set_nodelay(true);
    let socket = SockRef::from(stream);
    let _best_effort = socket.set_tcp_user_timeout(Some(UNACKNOWLEDGED_TIMEOUT));
    let _best_effort = socket.set_tcp_notsent_lowat(UNSENT_BYTES);
}

#[cfg(test)]
mod tests {
    use tokio_rustls::server::TlsStream;

    use super::*;

    /// Returns the memory of a connection's task.
    fn task_bytes<'a, S: ClientStream, F>(
        _task: impl Fn(&'a Servers, bool, S, Protocol, EdgeService, &'a ConnectionGuard) -> F,
    ) -> usize {
        size_of::<F>()
    }

    #[test]
    fn the_task_of_a_connection_on_the_fast_path_is_small() {
        let plain = task_bytes(serve_requests::<TcpStream>);
        let tls = task_bytes(serve_requests::<Box<TlsStream<TcpStream>>>);
        assert!(plain.max(tls) < 2_048, "{plain} and {tls} bytes");
    }
}
