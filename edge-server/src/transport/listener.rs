//! The public listener: accepts connections and serves HTTP/1.1 and cleartext HTTP/2, with limits for untrusted clients.

use std::error::Error;
use std::future::poll_fn;
use std::io::{self, Cursor};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use hyper::rt::{Executor, Read, Write};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use service::Shutdown;
use socket2::SockRef;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::coalescing_writer::CoalescingWriter;
use super::connections::{ConnectionGuard, ConnectionTable, Disposition, Room};
use super::counting_writer::CountingWriter;
use super::fast_path::{Handoff, Protocol};
use super::router::HostRouter;
use super::service::EdgeService;
use crate::config::Connections;
use crate::state::EdgeState;

/// Time that running requests have to finish on shutdown.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);
/// Time without a TCP acknowledgement after which a client counts as gone.
const UNACKNOWLEDGED_TIMEOUT: Duration = Duration::from_secs(60);
/// Bytes that the operating system accepts beyond what it can send. With megabytes of it, a client that reads slowly
/// would look for minutes like one that does not read.
const UNSENT_BYTES: u32 = 128 * 1024;
/// Interval of HTTP/2 pings.
const PING_INTERVAL: Duration = Duration::from_secs(30);
/// Interval at which a waiting connection tries again to replace an idle one.
const CLOSE_INTERVAL: Duration = Duration::from_millis(100);
/// Number of idle checks within the shortest timeout.
const CHECKS_PER_TIMEOUT: u32 = 8;

/// Serves clients until `shutdown`, then drains their connections. Failed accepts are retried.
pub(crate) async fn serve(
    listener: TcpListener,
    state: EdgeState,
    router: HostRouter,
    limits: Connections,
    shutdown: Shutdown,
) -> anyhow::Result<()> {
    let servers = Arc::new(Servers::new(&limits));
    let table = ConnectionTable::new(limits.clone());
    let permits = Arc::new(Semaphore::new(limits.max));
    let reaper = tokio::spawn(reap_idle(Arc::clone(&table), limits.clone(), shutdown.clone()));
    let mut listener = listener;
    // axum's accept, not the socket's own: it retries, and pauses when file descriptors run out.
    while let Some((stream, peer)) =
        shutdown.unless_requested(axum::serve::Listener::accept(&mut listener)).await
    {
        let network = state.trusted_proxies.limited_network(peer);
        let Some(room) = table.make_room(network, Instant::now()) else {
            tracing::debug!(%peer, "closed a connection of an address with too many that are not idle");
            continue;
        };
        let Some(permit) = shutdown.unless_requested(acquire(&permits, &table, room)).await else { break };
        let guard = table.insert(network, Instant::now());
        let connection = Arc::clone(&guard.connection);
        let service = EdgeService::new(&state, &router, connection, peer, limits.body_timeout);
        let (servers, fast_path) = (Arc::clone(&servers), limits.fast_path);
        tokio::spawn(async move {
            serve_connection(&servers, fast_path, stream, service, &guard).await;
            drop((guard, permit));
        });
    }
    drop(listener);
    let aborted = table.drain(DRAIN_TIMEOUT).await;
    if aborted > 0 {
        tracing::warn!(
            connections = aborted,
            "aborted connections with requests still running after the drain timeout"
        );
    }
    reaper.abort();
    Ok(())
}

/// Waits for the permit of a new connection. At the limit, closes the connection that is idle longest, unless one of the same
/// address is being closed already. Further connections wait in the system's accept queue.
async fn acquire(
    permits: &Arc<Semaphore>,
    table: &ConnectionTable,
    mut room: Room,
) -> Option<OwnedSemaphorePermit> {
    if let Ok(permit) = Arc::clone(permits).try_acquire_owned() {
        return Some(permit);
    }
    loop {
        if room == Room::Free {
            table.close_idlest(Instant::now());
        }
        // If none was idle, one may be by then.
        room = Room::Free;
        let permit = tokio::time::timeout(CLOSE_INTERVAL, Arc::clone(permits).acquire_owned()).await;
        if let Ok(permit) = permit {
            return permit.ok();
        }
    }
}

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
struct Servers {
    /// Detects the HTTP version from the first bytes.
    any: auto::Builder<EagerExecutor>,
    http1: auto::Builder<EagerExecutor>,
    http2: auto::Builder<EagerExecutor>,
}

impl Servers {
    fn new(limits: &Connections) -> Self {
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

/// Serves one connection from its first byte to its last.
async fn serve_connection(
    servers: &Servers,
    fast_path: bool,
    mut stream: TcpStream,
    mut service: EdgeService,
    guard: &ConnectionGuard,
) {
    set_socket_options(&stream);
    let handoff =
        if fast_path { service.serve_fast_path(&mut stream).await } else { Some(Handoff::default()) };
    let Some(Handoff { unread, protocol }) = handoff else { return };
    let (reader, writer) = stream.into_split();
    let writer = CountingWriter::new(writer, Arc::clone(&guard.connection));
    let reader = Cursor::new(unread).chain(reader);
    let ended = if protocol == Protocol::Http2 {
        let coalescing = CoalescingWriter::new(writer);
        let io = TokioIo::new(tokio::io::join(reader, coalescing.clone()));
        let connection = pin!(servers.http2.serve_connection(io, service));
        drive(connection, guard, |cx| coalescing.poll_send(cx)).await
    } else {
        let server = if protocol == Protocol::Http1 { &servers.http1 } else { &servers.any };
        let io = TokioIo::new(tokio::io::join(reader, writer));
        let connection = pin!(server.serve_connection(io, service));
        drive(connection, guard, |_| Poll::Ready(Ok(()))).await
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}

/// Polls hyper's connection to its end, calls `send` after each poll, and obeys the connection's disposition.
async fn drive<I>(
    mut connection: Pin<&mut auto::Connection<'_, I, EdgeService, EagerExecutor>>,
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
            match guard.connection.poll_disposition(&mut waker, cx) {
                Disposition::CloseWhenIdle if !is_closing => {
                    is_closing = true;
                    connection.as_mut().graceful_shutdown();
                    polled = connection.as_mut().poll(cx);
                }
                Disposition::KeepOpen | Disposition::CloseWhenIdle => {}
                Disposition::Abort => return Poll::Ready(Ok(())),
            }
        }
        match send(cx) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error.into())),
            _sent_or_pending => polled,
        }
    })
    .await
}

fn set_socket_options(stream: &TcpStream) {
    // Responses are written whole, so Nagle's algorithm would only delay them.
    let _best_effort = stream.set_nodelay(true);
    let socket = SockRef::from(stream);
    let _best_effort = socket.set_tcp_user_timeout(Some(UNACKNOWLEDGED_TIMEOUT));
    let _best_effort = socket.set_tcp_notsent_lowat(UNSENT_BYTES);
}

async fn reap_idle(table: Arc<ConnectionTable>, limits: Connections, shutdown: Shutdown) {
    let shortest = limits.header_timeout.min(limits.idle_timeout);
    let mut ticks = tokio::time::interval(shortest / CHECKS_PER_TIMEOUT);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    while shutdown.unless_requested(ticks.tick()).await.is_some() {
        table.reap_idle(Instant::now());
    }
}
