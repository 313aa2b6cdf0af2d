//! The front's door: requests in, answers out, an orderly end.

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

use super::ClickhouseHttpArgs;
use super::body::receive;
use super::engine::Engine;
use super::exception::Exception;
use super::job::{Event, Job, Outlet};
use super::request::{Account, Request};
use super::response::{Outline, plain, refusal};
use crate::secret;

/// Requests under way get this long to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(10);
/// Pieces of an answer that wait for the client; beyond them the engine waits.
const PIECES_AHEAD: usize = 4;
/// How long a statement that was told to end gets before it is told again.
const BETWEEN_KILLS: Duration = Duration::from_millis(100);

struct Front {
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
        // Without it an answer's end waits for the kernel's timer; failing only costs time.
        let _slower = stream.set_nodelay(true);
    });
    let open = move || Engine::open(&args.lib, &args.data, args.connections);
    let engine = tokio::task::spawn_blocking(open).await??;
    let front = Arc::new(Front { engine, account: Account { user: args.user, password } });

    let ending = Arc::new(Notify::new());
    let router = Router::new()
        .route("/ping", any(ping))
        .route("/replicas_status", any(ping))
        .route("/", any(statement))
        .fallback(unknown)
        .with_state(Arc::clone(&front));
    let server = axum::serve(listener, router).with_graceful_shutdown({
        let ending = Arc::clone(&ending);
        async move { ending.notified().await }
    });
    let mut server = tokio::spawn(server.into_future());

    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    tokio::select! {
        ended = &mut server => return Ok(ended??),
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    ending.notify_one();
    // A client that keeps its connection busy doesn't keep the process.
    if tokio::time::timeout(GRACE, server).await.is_err() {
        tracing::warn!("ending with requests still under way");
    }
    Ok(())
}

async fn ping() -> Response<Body> {
    plain(StatusCode::OK, "Ok.\n")
}

async fn unknown(request: HttpRequest) -> Response<Body> {
    plain(StatusCode::NOT_FOUND, format!("There is no handle {}\n", request.uri().path()))
}

async fn statement(State(front): State<Arc<Front>>, request: HttpRequest) -> Response<Body> {
    if request.method() == Method::GET && request.uri().query().is_none() {
        return ping().await;
    }
    front.perform(request).await.unwrap_or_else(|exception| refusal(&exception))
}

impl Front {
    async fn perform(self: Arc<Self>, http: HttpRequest) -> Result<Response<Body>, Exception> {
        let (parts, body) = http.into_parts();
        let mut request = Request::read(&parts)?;
        self.account.admit(&request)?;
        let body = receive(body, &parts.headers, &mut request, &self.engine.spool).await?;
        let encoding = request.encoding(&parts.headers);
        let query_id = request.query_id.clone().unwrap_or_else(random_id);
        request.mark = request.ends_with_client().then(random_id);
        let mark = request.mark.clone();
        let job = Job::plan(request, body)?;
        let tag = random_id().bytes().filter(|byte| *byte != b'-').map(letter).take(16).collect();
        let outline = Outline { query_id, format: job.format.clone(), encoding, tag };

        let closed = |_| Exception::new(236, "ABORTED", "the sandbox's ClickHouse is ending");
        let place = Arc::clone(&self.engine.places).acquire_owned().await.map_err(closed)?;
        let (events, outcome) = mpsc::channel(PIECES_AHEAD);
        let (running, over) = oneshot::channel::<()>();
        if let Some(mark) = mark {
            tokio::spawn(Arc::clone(&self).end_with_client(mark, events.clone(), over));
        }
        let outlet = Outlet { events, runtime: tokio::runtime::Handle::current() };
        tokio::task::spawn_blocking(move || {
            job.run(&self.engine, &outlet);
            drop((running, place));
        });
        Ok(outline.answer(outcome).await)
    }

    /// Ends a statement that is still running when nobody takes its events any more: again and again, because it
    /// may only be about to begin.
    async fn end_with_client(
        self: Arc<Self>,
        mark: String,
        events: mpsc::Sender<Event>,
        mut over: oneshot::Receiver<()>,
    ) {
        tokio::select! {
            _ = &mut over => return,
            () = events.closed() => {}
        }
        let mut turns = tokio::time::interval(BETWEEN_KILLS);
        loop {
            tokio::select! {
                _ = &mut over => return,
                _ = turns.tick() => {}
            }
            let (front, mark) = (Arc::clone(&self), mark.clone());
            if let Ok(Err(exception)) = tokio::task::spawn_blocking(move || front.engine.kill(&mark)).await {
                tracing::warn!(%exception, "a statement that nobody waits for runs on");
            }
        }
    }
}

fn random_id() -> String {
    uuid::Builder::from_random_bytes(secret::random()).into_uuid().to_string()
}

/// A hexadecimal digit as a letter: an exception's tag is letters alone.
fn letter(digit: u8) -> char {
    char::from(if digit.is_ascii_digit() { digit - b'0' + b'g' } else { digit })
}
