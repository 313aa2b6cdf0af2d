//! The public listener: hyper over HTTP/1.1 and cleartext HTTP/2, with its limits set for strangers.

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
use tokio::sync::Semaphore;

use crate::config::Connections;
use crate::state::EdgeState;
use crate::transport::coalescing_writer::CoalescingWriter;
use crate::transport::connections::{ConnectionGuard, ConnectionTable, Disposition};
use crate::transport::counting_writer::CountingWriter;
use crate::transport::fast_path::{Handoff, Protocol};
use crate::transport::router::HostRouter;
use crate::transport::service::EdgeService;

/// Requests still running this long after shutdown was asked for are cut off.
const DRAIN: Duration = Duration::from_secs(10);
/// A visitor's machine that doesn't confirm what it is sent for that long is gone, or pretends to be.
const UNREAD_FOR: Duration = Duration::from_secs(60);
/// What the system takes beyond what it can send: with megabytes of it, a visitor who reads slowly would look for
/// minutes like one who doesn't read.
const UNSENT_BYTES: u32 = 128 * 1024;
/// How often HTTP/2 asks whether there is still somebody.
const PING_EVERY: Duration = Duration::from_secs(30);
/// How many rounds are made in the shortest time that is watched.
const ROUNDS: u32 = 8;

/// Serves visitors until `shutdown`, then lets open requests end.
///
/// # Errors
/// None at present: failing accepts are tried again.
pub(crate) async fn serve(
    listener: TcpListener,
    edge: EdgeState,
    rooms: HostRouter,
    limits: Connections,
    shutdown: Shutdown,
) -> anyhow::Result<()> {
    let servers = Arc::new(Servers::new(&limits));
    let seats = ConnectionTable::new(limits.clone());
    let room = Arc::new(Semaphore::new(limits.max));
    let rounds = tokio::spawn(make_rounds(Arc::clone(&seats), limits.clone(), shutdown.clone()));
    let mut listener = listener;
    let next = async |listener: &mut TcpListener| {
        // Nobody is turned away: without room they wait where the system lets connections wait.
        let place = Arc::clone(&room).acquire_owned().await;
        // The trait's accept, not the socket's own: it tries again, and pauses when file descriptors run out.
        (place, axum::serve::Listener::accept(listener).await)
    };
    while let Some((place, (stream, peer))) = shutdown.unless_requested(next(&mut listener)).await {
        let seated = seats.take(Instant::now());
        let door = EdgeService::new(&edge, &rooms, Arc::clone(&seated.seat), peer, limits.body_patience);
        let (servers, is_quick) = (Arc::clone(&servers), limits.quick_lane);
        tokio::spawn(async move {
            attend(&servers, is_quick, stream, door, &seated).await;
            drop((seated, place));
        });
    }
    drop(listener);
    let cut_off = seats.clear(DRAIN).await;
    if cut_off > 0 {
        tracing::warn!(connections = cut_off, "requests still running after the drain time were cut off");
    }
    rounds.abort();
    Ok(())
}

/// Runs HTTP/2's streams: at once, and as tasks of their own only if they have to wait. A hit never has to.
#[derive(Debug, Clone, Copy)]
struct AtOnce;

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for AtOnce {
    fn execute(&self, stream: F) {
        let mut stream = Box::pin(stream);
        // Nobody need be woken: whoever has to wait is asked again by its task, first thing.
        if stream.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
            tokio::spawn(stream);
        }
    }
}

/// hyper, set up for strangers.
struct Servers {
    /// For connections that have said nothing yet: their first bytes say which HTTP they speak.
    any: auto::Builder<AtOnce>,
    http1: auto::Builder<AtOnce>,
    http2: auto::Builder<AtOnce>,
}

impl Servers {
    fn new(limits: &Connections) -> Self {
        let any = server(limits);
        Self { http1: any.clone().http1_only(), http2: any.clone().http2_only(), any }
    }
}

fn server(limits: &Connections) -> auto::Builder<AtOnce> {
    let mut server = auto::Builder::new(AtOnce);
    // Without a timer of hyper's own: `seats` watches headers that don't come.
    server.http1().max_buf_size(limits.header_bytes.try_into().unwrap_or(usize::MAX));
    server
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(limits.header_bytes)
        .max_concurrent_streams(limits.streams)
        .keep_alive_interval(PING_EVERY);
    server
}

/// One connection, from its first byte to its last.
async fn attend(
    servers: &Servers,
    is_quick: bool,
    mut stream: TcpStream,
    mut door: EdgeService,
    seated: &ConnectionGuard,
) {
    prepare(&stream);
    let rest = if is_quick { door.quick(&mut stream).await } else { Some(Handoff::default()) };
    let Some(Handoff { unread, spoken }) = rest else { return };
    let (reading, writing) = stream.into_split();
    let writing = CountingWriter::new(writing, Arc::clone(&seated.seat));
    let reading = Cursor::new(unread).chain(reading);
    let ended = if spoken == Protocol::Http2 {
        let gathered = CoalescingWriter::new(writing);
        let io = TokioIo::new(tokio::io::join(reading, gathered.clone()));
        let connection = pin!(servers.http2.serve_connection(io, door));
        converse(connection, seated, |cx| gathered.poll_send(cx)).await
    } else {
        let server = if spoken == Protocol::Http1 { &servers.http1 } else { &servers.any };
        let io = TokioIo::new(tokio::io::join(reading, writing));
        let connection = pin!(server.serve_connection(io, door));
        converse(connection, seated, |_| Poll::Ready(Ok(()))).await
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}

/// Lets hyper have its say until the connection ends, and `send` what it said after each turn.
async fn converse<I>(
    mut connection: Pin<&mut auto::Connection<'_, I, EdgeService, AtOnce>>,
    seated: &ConnectionGuard,
    mut send: impl FnMut(&mut Context<'_>) -> Poll<io::Result<()>>,
) -> Result<(), Box<dyn Error + Send + Sync>>
where
    I: Read + Write + Unpin + 'static,
{
    let (mut waker, mut leaving) = (None, false);
    poll_fn(|cx| {
        // First this: what was read ahead is not idleness.
        let mut turn = connection.as_mut().poll(cx);
        if turn.is_pending() {
            match seated.seat.wish(&mut waker, cx) {
                Disposition::Leave if !leaving => {
                    leaving = true;
                    connection.as_mut().graceful_shutdown();
                    turn = connection.as_mut().poll(cx);
                }
                Disposition::Stay | Disposition::Leave => {}
                Disposition::Cut => return Poll::Ready(Ok(())),
            }
        }
        match send(cx) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error.into())),
            _sent_or_waiting => turn,
        }
    })
    .await
}

fn prepare(stream: &TcpStream) {
    // Answers are written whole; waiting to fill a packet only delays them.
    let _best_effort = stream.set_nodelay(true);
    let socket = SockRef::from(stream);
    let _best_effort = socket.set_tcp_user_timeout(Some(UNREAD_FOR));
    let _best_effort = socket.set_tcp_notsent_lowat(UNSENT_BYTES);
}

async fn make_rounds(seats: Arc<ConnectionTable>, limits: Connections, shutdown: Shutdown) {
    let mut ticks = tokio::time::interval(limits.header_timeout.min(limits.idle_timeout) / ROUNDS);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    while shutdown.unless_requested(ticks.tick()).await.is_some() {
        seats.reap_idle(Instant::now());
    }
}
