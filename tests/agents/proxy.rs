//! A proxy that adds an API key: the conformance suite can't send one.

use std::sync::Arc;

use anyhow::Result;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use harness::Client;
use http::{HeaderMap, HeaderName, Method, StatusCode, Uri, header};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// A running proxy. Everything but the key passes unchanged, the host included.
pub(crate) struct Proxy {
    task: JoinHandle<()>,
    /// The port on which it listens.
    pub(crate) port: u16,
}

impl Proxy {
    /// Starts a proxy in front of this client's system, with the client's key.
    pub(crate) async fn start(client: Client) -> Result<Self> {
        let listener = TcpListener::bind("localhost:0").await?;
        let port = listener.local_addr()?.port();
        let router = Router::new().fallback(forward).with_state(Arc::new(client));
        let task = tokio::spawn(async move {
            let _ended = axum::serve(listener, router).await;
        });
        Ok(Self { task, port })
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn forward(
    State(client): State<Arc<Client>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or("localhost");
    let url = format!("http://{host}{uri}");
    let passed: Vec<(&str, &str)> = headers
        .iter()
        .filter(|(name, _)| !is_of_connection(name) && *name != header::HOST)
        .filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)))
        .collect();
    match client.send(method, &url, &passed, body).await {
        Ok(answer) => {
            let mut headers = answer.headers;
            for name in [header::CONNECTION, header::TRANSFER_ENCODING, header::CONTENT_LENGTH] {
                headers.remove(name);
            }
            (answer.status, headers, answer.body).into_response()
        }
        Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
    }
}

fn is_of_connection(name: &HeaderName) -> bool {
    [header::CONNECTION, header::TRANSFER_ENCODING, header::CONTENT_LENGTH].contains(name)
}
