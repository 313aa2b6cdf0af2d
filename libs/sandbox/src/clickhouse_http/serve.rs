//! The HTTP server of the interface, and its graceful shutdown.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use axum::body::Body;
use axum::extract::{Request as HttpRequest, State};
use axum::http::{Method, Response, StatusCode};
use axum::routing::any;
use axum::{Router, serve::ListenerExt as _};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{Notify, mpsc, oneshot};

use super::arguments::ClickhouseHttpArgs;
use super::body::receive;
use super::engine::Engine;
use super::exception::Exception;
use super::job::{Event, EventSender, Job};
use super::request::{Account, Request};
use super::response::{ResponseHead, error_response, plain};
use crate::secret;

/// Time for running requests after SIGTERM.
const GRACE: Duration = Duration::from_secs(10);
/// Pieces buffered for a client. The engine waits while the buffer is full.
const BUFFERED_PIECES: usize = 4;
/// Interval between attempts to cancel a statement.
const KILL_INTERVAL: Duration = Duration::from_millis(100);

struct ClickhouseHttp {
    engine: Engine,
    account: Account,
}

pub(super) async fn serve(args: ClickhouseHttpArgs) -> Result<()> {
    let password = match &args.password_file {
        Some(file) => secret::read(file)?,
        None => String::new(),
    };
    let listener =
        TcpListener::bind(args.listen).await.with_context(|| format!("listening on {}", args.listen))?;
    let listener = listener.tap_io(|stream| {
        // Otherwise the end of a response waits for the kernel's timer. A failure only costs time.
        let _slower = stream.set_nodelay(true);
    });
    let open = move || Engine::open(&args.lib, &args.data, args.max_concurrent, args.backups.as_deref());
    let engine = tokio::task::spawn_blocking(open).await??;
    let state = Arc::new(ClickhouseHttp { engine, account: Account { user: args.user, password } });

    let shutdown = Arc::new(Notify::new());
    let router = Router::new()
        .route("/ping", any(ping))
        .route("/replicas_status", any(ping))
        .route("/", any(statement))
        .fallback(unknown)
        .with_state(Arc::clone(&state));
    let server = axum::serve(listener, router).with_graceful_shutdown({
        let shutdown = Arc::clone(&shutdown);
        async move { shutdown.notified().await }
    });
    let mut server = tokio::spawn(server.into_future());

    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    tokio::select! {
        ended = &mut server => return Ok(ended??),
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    shutdown.notify_one();
    // A client with a busy connection doesn't prevent the exit.
    if tokio::time::timeout(GRACE, server).await.is_err() {
        tracing::warn!("exiting with requests still running");
    }
    Ok(())
}

async fn ping() -> Response<Body> {
    plain(StatusCode::OK, "Ok.\n")
}

async fn unknown(request: HttpRequest) -> Response<Body> {
    plain(StatusCode::NOT_FOUND, format!("There is no handle {}\n", request.uri().path()))
}

async fn statement(State(server): State<Arc<ClickhouseHttp>>, request: HttpRequest) -> Response<Body> {
    if request.method() == Method::GET && request.uri().query().is_none() {
        return ping().await;
    }
    server.execute(request).await.unwrap_or_else(|exception| error_response(&exception))
}

impl ClickhouseHttp {
    async fn execute(self: Arc<Self>, http: HttpRequest) -> Result<Response<Body>, Exception> {
        let (parts, body) = http.into_parts();
        let mut request = Request::parse(&parts)?;
        self.account.authenticate(&request)?;
        let body = receive(body, &parts.headers, &mut request, &self.engine.spool).await?;
        let encoding = request.encoding(&parts.headers);
        let query_id = request.query_id.clone().unwrap_or_else(random_id);
        request.kill_id = request.cancels_on_disconnect().then(random_id);
        let kill_id = request.kill_id.clone();
        let job = Job::plan(request, body)?;
        let tag = random_id().bytes().filter(|byte| *byte != b'-').map(letter).take(16).collect();
        let head = ResponseHead { query_id, format: job.format.clone(), encoding, tag };

        let closed = |_| Exception::new(236, "ABORTED", "the sandbox's ClickHouse is shutting down");
        let permit = Arc::clone(&self.engine.permits).acquire_owned().await.map_err(closed)?;
        let (events, receiver) = mpsc::channel(BUFFERED_PIECES);
        let (running, ended) = oneshot::channel::<()>();
        if let Some(kill_id) = kill_id {
            tokio::spawn(Arc::clone(&self).cancel_on_disconnect(kill_id, events.clone(), ended));
        }
        let events = EventSender { events, runtime: tokio::runtime::Handle::current() };
        tokio::task::spawn_blocking(move || {
            job.run(&self.engine, &events);
            drop((running, permit));
        });
        Ok(head.respond(receiver).await)
    }

    /// Cancels a statement when its events are no longer received. Repeats that until the statement has ended, because it may
    /// not have begun yet.
    async fn cancel_on_disconnect(
        self: Arc<Self>,
        kill_id: String,
        events: mpsc::Sender<Event>,
        mut ended: oneshot::Receiver<()>,
    ) {
        tokio::select! {
            _ = &mut ended => return,
            () = events.closed() => {}
        }
        let mut ticks = tokio::time::interval(KILL_INTERVAL);
        loop {
            tokio::select! {
                _ = &mut ended => return,
                _ = ticks.tick() => {}
            }
            let (server, kill_id) = (Arc::clone(&self), kill_id.clone());
            if let Ok(Err(exception)) =
                tokio::task::spawn_blocking(move || server.engine.kill(&kill_id)).await
            {
                tracing::warn!(%exception, "can't cancel a statement of a disconnected client");
            }
        }
    }
}

fn random_id() -> String {
    uuid::Builder::from_random_bytes(secret::random()).into_uuid().to_string()
}

/// Maps a hexadecimal digit to a letter, because an exception tag has letters only.
fn letter(digit: u8) -> char {
    char::from(if digit.is_ascii_digit() { digit - b'0' + b'g' } else { digit })
}
