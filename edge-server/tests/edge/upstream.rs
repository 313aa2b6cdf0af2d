//! A fake upstream service that records the requests it receives.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, Method, StatusCode, Uri};
use tokio::net::TcpListener;
use tokio::sync::OwnedRwLockWriteGuard;

/// One request as the upstream received it.
#[derive(Debug, Clone)]
pub(crate) struct ReceivedRequest {
    pub(crate) method: Method,
    pub(crate) target: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl ReceivedRequest {
    /// All values of a header, joined.
    pub(crate) fn header(&self, name: &str) -> String {
        let values: Vec<_> = self.headers.get_all(name).iter().map(|value| value.to_str().unwrap()).collect();
        values.join(" | ")
    }
}

/// A running upstream. It stops with the test's runtime.
#[derive(Clone)]
pub(crate) struct Upstream {
    pub(crate) address: SocketAddr,
    received: Arc<Mutex<Vec<ReceivedRequest>>>,
    /// Status, media type and body of all responses, if they are not the usual one.
    answer: Arc<Mutex<Option<(u16, String, String)>>>,
    gate: Arc<tokio::sync::RwLock<()>>,
}

impl Upstream {
    pub(crate) async fn start() -> Self {
        Self::accept_from(TcpListener::bind("127.0.0.1:0").await.unwrap())
    }

    pub(crate) fn accept_from(listener: TcpListener) -> Self {
        let address = listener.local_addr().unwrap();
        let upstream =
            Self { address, received: Arc::default(), answer: Arc::default(), gate: Arc::default() };
        let app = Router::new().fallback(record).with_state(upstream.clone());
        tokio::spawn(async move { axum::serve(listener, app).await });
        upstream
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Answers with this status, media type and body from now on.
    pub(crate) fn answer_with(&self, status: u16, media_type: &str, body: &str) {
        *self.answer.lock().unwrap() = Some((status, media_type.to_owned(), body.to_owned()));
    }

    /// Holds back all responses until the returned guard is dropped. Requests are still received.
    pub(crate) fn hold_responses(&self) -> OwnedRwLockWriteGuard<()> {
        Arc::clone(&self.gate).try_write_owned().unwrap()
    }

    /// All requests received so far.
    pub(crate) fn all(&self) -> Vec<ReceivedRequest> {
        self.received.lock().unwrap().clone()
    }

    pub(crate) fn last(&self) -> ReceivedRequest {
        self.all().pop().expect("the upstream has received no request")
    }
}

async fn record(
    State(upstream): State<Upstream>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let target = uri.path_and_query().map_or("", |path| path.as_str()).to_owned();
    let response_headers = [
        ("set-cookie", "a=1; HttpOnly"),
        ("set-cookie", "b=2"),
        ("connection", "x-of-this-hop"),
        ("x-of-this-hop", "1"),
        ("keep-alive", "timeout=5"),
        ("x-inner", "said"),
    ];
    upstream.received.lock().unwrap().push(ReceivedRequest { method, target, headers, body });
    drop(upstream.gate.read().await);
    let answer = upstream.answer.lock().unwrap().clone();
    if let Some((status, media_type, body)) = answer {
        let status = StatusCode::from_u16(status).unwrap();
        return (status, [("content-type", media_type)], body).into_response();
    }
    let mut response = "from the inside".into_response();
    for (name, value) in response_headers {
        response.headers_mut().append(name, value.parse().unwrap());
    }
    response
}
