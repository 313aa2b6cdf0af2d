//! A webhook receiver that answers by a script and keeps what it was sent.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::response::Response;
use http::HeaderMap;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// One request, byte for byte.
#[derive(Debug, Clone)]
pub(crate) struct Taken {
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Taken {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).unwrap().to_str().unwrap()
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// A running receiver; it ends with the test's runtime.
#[derive(Clone)]
pub(crate) struct Receiver {
    pub(crate) url: String,
    taken: Arc<Mutex<Vec<Taken>>>,
    script: Arc<Mutex<VecDeque<Response>>>,
    /// Answers it may give.
    answers: Arc<Semaphore>,
}

impl Receiver {
    /// Answers by the script, then 200.
    pub(crate) async fn answering(script: impl IntoIterator<Item = Response>) -> Self {
        Self::with(script, Semaphore::MAX_PERMITS).await
    }

    /// Takes requests and answers none until [`Receiver::release`].
    pub(crate) async fn silent() -> Self {
        Self::silent_then([]).await
    }

    /// The same, then answers by the script.
    pub(crate) async fn silent_then(script: impl IntoIterator<Item = Response>) -> Self {
        Self::with(script, 0).await
    }

    async fn with(script: impl IntoIterator<Item = Response>, answers: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let receiver = Self {
            url: format!("http://{}/hook?secret=1", listener.local_addr().unwrap()),
            taken: Arc::default(),
            script: Arc::new(Mutex::new(script.into_iter().collect())),
            answers: Arc::new(Semaphore::new(answers)),
        };
        let app = Router::new().fallback(take).with_state(receiver.clone());
        tokio::spawn(async move { axum::serve(listener, app).await });
        receiver
    }

    pub(crate) fn release(&self) {
        self.answers.add_permits(1_000);
    }

    /// How much it was sent so far.
    pub(crate) fn count(&self) -> usize {
        self.taken.lock().unwrap().len()
    }

    /// Everything it was sent so far.
    pub(crate) fn taken(&self) -> Vec<Taken> {
        self.taken.lock().unwrap().clone()
    }
}

async fn take(State(receiver): State<Receiver>, headers: HeaderMap, body: Bytes) -> Response {
    receiver.taken.lock().unwrap().push(Taken { headers, body });
    receiver.answers.acquire().await.unwrap().forget();
    receiver.script.lock().unwrap().pop_front().unwrap_or_default()
}

/// An answer of that status.
pub(crate) fn status(code: u16) -> Response {
    Response::builder().status(code).body(Body::empty()).unwrap()
}
