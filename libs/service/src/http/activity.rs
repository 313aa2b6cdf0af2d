//! What a connection does: its running requests, and since when it has none. From this the server knows during a drain when it
//! may close the connection without meeting a request.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{ConnectInfo, Request};
use axum::response::Response;
use http::{HeaderValue, Version, header};
use http_body::{Frame, SizeHint};
use tokio::sync::{Notify, SetOnce};
use tokio::time::{Instant, timeout_at};
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::{Drain, Draining, EarlyRequest};

/// The activity of one connection, shared between its task and its requests.
pub(super) struct Activity {
    draining: Draining,
    /// The version of the first request.
    version: SetOnce<Version>,
    state: Mutex<State>,
    /// Notified during a drain when a request begins or ends.
    changed: Notify,
}

struct State {
    running: usize,
    /// When the last request ended, or the connection began.
    idle_since: Instant,
    /// Present while the client does not know that the connection ends.
    unaware: Option<TaskTrackerToken>,
}

impl Activity {
    pub(super) fn new(draining: &Draining) -> Arc<Self> {
        let unaware = Some(draining.begin_connection());
        let state = State { running: 0, idle_since: Instant::now(), unaware };
        let (version, changed) = (SetOnce::new(), Notify::new());
        Arc::new(Self { draining: draining.clone(), version, state: Mutex::new(state), changed })
    }

    /// Waits until the connection is to be closed once it has no running request.
    pub(super) async fn closable(&self) {
        self.draining.requested().await;
        tokio::select! {
            // Over HTTP/2 the server announces the end of the connection, so that no request meets it.
            () = self.is_http2() => {}
            () = self.quiet() => {}
        }
        self.state().unaware = None;
    }

    async fn is_http2(&self) {
        if *self.version.wait().await < Version::HTTP_2 {
            std::future::pending::<()>().await;
        }
    }

    /// Waits until the drain period is over and the connection was idle for so long that its client has dropped it.
    async fn quiet(&self) {
        self.draining.period_over().await;
        loop {
            let changed = self.changed.notified();
            let (running, idle_since) = {
                let state = self.state();
                (state.running, state.idle_since)
            };
            if running > 0 {
                changed.await;
                continue;
            }
            let quiet_time = match self.version.get() {
                Some(_) => self.draining.quiet_time(),
                None => self.draining.quiet_time().max(Drain::FIRST_REQUEST_TIMEOUT),
            };
            let closable_at = idle_since + quiet_time;
            if closable_at <= Instant::now() || timeout_at(closable_at, changed).await.is_err() {
                return;
            }
        }
    }

    /// Counts a request until its guard is dropped.
    fn begin(self: &Arc<Self>, version: Version) -> Running {
        let _known = self.version.set(version);
        self.state().running += 1;
        self.report_change();
        Running { activity: Arc::clone(self), _early: self.draining.begin_request() }
    }

    /// Makes a response the last of its connection if the server is draining. Over HTTP/2 a frame does.
    fn announce_end(&self, response: &mut Response) {
        let is_http1 = self.version.get().is_some_and(|version| *version < Version::HTTP_2);
        if is_http1 && self.draining.is_requested() {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            self.state().unaware = None;
        }
    }

    fn report_change(&self) {
        if self.draining.is_requested() {
            self.changed.notify_waiters();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that is not answered in full.
struct Running {
    activity: Arc<Activity>,
    _early: Option<EarlyRequest>,
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut state = self.activity.state();
        state.running -= 1;
        state.idle_since = Instant::now();
        drop(state);
        self.activity.report_change();
    }
}

/// The application, as the requests of one connection reach it.
#[derive(Clone)]
pub(super) struct CountedApp {
    pub(super) app: Router,
    pub(super) peer: SocketAddr,
    pub(super) activity: Arc<Activity>,
}

impl<B> tower::Service<Request<B>> for CountedApp
where
    Router: tower::Service<Request<B>, Response = Response, Error = Infallible>,
    <Router as tower::Service<Request<B>>>::Future: Send + 'static,
{
    type Response = Response<RunningBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.app.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let running = self.activity.begin(request.version());
        request.extensions_mut().insert(ConnectInfo::<SocketAddr>(self.peer));
        let response = self.app.call(request);
        Box::pin(async move {
            let mut response = response.await?;
            running.activity.announce_end(&mut response);
            Ok(response.map(|body| RunningBody { body, _running: running }))
        })
    }
}

/// The body of a response, whose request runs until it is sent or given up.
pub(super) struct RunningBody {
    body: Body,
    _running: Running,
}

impl http_body::Body for RunningBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
