//! A server of another company, such as a chat or a mail service: records requests and answers them as scripts say.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, Method, StatusCode, Uri};
use serde_json::Value;
use tokio::net::TcpListener;

/// A request that a peer received.
#[derive(Debug, Clone)]
pub struct PeerRequest {
    pub method: Method,
    /// Path and query.
    pub path: String,
    pub headers: HeaderMap,
    /// The body, byte for byte.
    pub body: Bytes,
    pub received_at: Instant,
    /// Whether the peer never answers it.
    pub hangs: bool,
}

impl PeerRequest {
    /// A header's value, or an empty string.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// The body as JSON, or null if it is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// What a peer answers to one request.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    /// A text is sent as plain text, everything else as JSON.
    pub body: Value,
    /// Time until the peer answers.
    pub delay: Duration,
    /// How many requests must have been in flight at the same time before the peer answers.
    pub in_flight: usize,
}

impl Answer {
    /// An immediate answer.
    pub fn new(status: u16, body: impl Into<Value>) -> Self {
        Self { status, body: body.into(), delay: Duration::ZERO, in_flight: 0 }
    }

    /// The same answer, sent later.
    #[must_use]
    pub fn after(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }

    /// The same answer, sent once this many requests to the path have been in flight at the same time.
    #[must_use]
    pub fn once_in_flight(self, in_flight: usize) -> Self {
        Self { in_flight, ..self }
    }
}

/// Gives the answer to a request, and to how many the peer has answered on the same path before.
type Script = Arc<dyn Fn(&PeerRequest, usize) -> Answer + Send + Sync>;

#[derive(Default)]
struct Scripted {
    script: Option<Script>,
    requests: Vec<PeerRequest>,
    /// Number, from 0, of the request that hangs.
    hanging: Option<usize>,
    answered: usize,
    running: usize,
    most_running: usize,
}

type Shared = Arc<Mutex<BTreeMap<String, Scripted>>>;

/// A server on this machine.
#[derive(Clone)]
pub struct Peer {
    /// The address, without a path.
    pub url: String,
    shared: Shared,
}

impl Peer {
    /// Listens on a free port. Paths without a script are answered 404.
    pub async fn listen() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let shared = Shared::default();
        let app = Router::new().fallback(receive).with_state(Arc::clone(&shared));
        tokio::spawn(async move { axum::serve(listener, app).await });
        Ok(Self { url, shared })
    }

    /// Answers requests to a path, and to all below it without a script of their own.
    pub fn answer(&self, path: &str, script: impl Fn(&PeerRequest, usize) -> Answer + Send + Sync + 'static) {
        lock(&self.shared).entry(path.to_owned()).or_default().script = Some(Arc::new(script));
    }

    /// Never answers request number `number` of a path, from 0.
    pub fn hang(&self, path: &str, number: usize) {
        lock(&self.shared).entry(path.to_owned()).or_default().hanging = Some(number);
    }

    /// The requests under the path of a script so far, in order.
    pub fn requests(&self, path: &str) -> Vec<PeerRequest> {
        lock(&self.shared).get(path).map(|scripted| scripted.requests.clone()).unwrap_or_default()
    }

    /// The largest number of requests under the path of a script that were in flight at the same time.
    pub fn most_at_once(&self, path: &str) -> usize {
        lock(&self.shared).get(path).map_or(0, |scripted| scripted.most_running)
    }
}

fn lock(shared: &Shared) -> MutexGuard<'_, BTreeMap<String, Scripted>> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A request in flight. It ends when it is answered and when its client disconnects.
struct Running {
    shared: Shared,
    path: String,
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(scripted) = lock(&self.shared).get_mut(&self.path) {
            scripted.running -= 1;
        }
    }
}

async fn receive(
    State(shared): State<Shared>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let path = uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
    let mut request = PeerRequest { method, path, headers, body, received_at: Instant::now(), hangs: false };
    let (answer, running) = {
        let mut scripts = lock(&shared);
        let found = scripts.iter_mut().rev().find(|(path, _)| is_below(uri.path(), path));
        let Some((path, scripted)) = found else { return StatusCode::NOT_FOUND.into_response() };
        let Some(script) = scripted.script.clone() else { return StatusCode::NOT_FOUND.into_response() };
        scripted.running += 1;
        scripted.most_running = scripted.most_running.max(scripted.running);
        request.hangs = scripted.hanging == Some(scripted.requests.len());
        scripted.requests.push(request.clone());
        let answer = (!request.hangs).then(|| script(&request, scripted.answered));
        scripted.answered += usize::from(answer.is_some());
        (answer, Running { shared: Arc::clone(&shared), path: path.clone() })
    };
    let Some(answer) = answer else { return std::future::pending().await };
    pause(answer.delay).await;
    while lock(&shared).get(&running.path).is_some_and(|scripted| scripted.most_running < answer.in_flight) {
        pause(Duration::from_millis(5)).await;
    }
    drop(running);
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    match answer.body {
        Value::String(text) => (status, text).into_response(),
        body => (status, [("content-type", "application/json")], body.to_string()).into_response(),
    }
}

#[expect(clippy::disallowed_methods, reason = "the pause is the server's, no test waits for it")]
async fn pause(time: Duration) {
    tokio::time::sleep(time).await;
}

fn is_below(path: &str, scripted: &str) -> bool {
    path.strip_prefix(scripted).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
