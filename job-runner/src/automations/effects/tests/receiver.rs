//! An HTTP server that records requests and answers by a function.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, Method, Uri};
use tokio::net::TcpListener;

#[derive(Debug, Clone)]
pub(super) struct Received {
    pub(super) method: Method,
    pub(super) uri: Uri,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Received {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

/// A running server. It ends with the test's runtime.
#[derive(Clone)]
pub(super) struct Receiver {
    /// `http://127.0.0.1:port`
    pub(super) origin: String,
    pub(super) port: u16,
    received: Arc<Mutex<Vec<Received>>>,
}

impl Receiver {
    pub(super) async fn answering<R: IntoResponse>(
        answer: impl Fn() -> R + Clone + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let received = Arc::<Mutex<Vec<Received>>>::default();
        let recorded = Arc::clone(&received);
        let respond = move |method, uri, headers, body| {
            recorded.lock().unwrap().push(Received { method, uri, headers, body });
            let response: Response = answer().into_response();
            async move { response }
        };
        let app = Router::new().fallback(move |method: Method, uri: Uri, headers: HeaderMap, body: Bytes| {
            respond(method, uri, headers, body)
        });
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { origin: format!("http://127.0.0.1:{port}"), port, received }
    }

    pub(super) fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }

    pub(super) fn count(&self) -> usize {
        self.received.lock().unwrap().len()
    }
}
