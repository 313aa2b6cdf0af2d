//! A webhook receiver that records every request and responds as configured.

use std::sync::{Arc, Mutex};

use anyhow::Result;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use http::{HeaderMap, StatusCode};
use serde_json::Value;
use tokio::net::TcpListener;

/// A request that a receiver recorded.
#[derive(Debug, Clone)]
pub struct Delivery {
    pub headers: HeaderMap,
    /// The body, byte for byte.
    pub body: Bytes,
}

impl Delivery {
    /// A header's value, or an empty string.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// The id of the submission it is about.
    pub fn submission_id(&self) -> String {
        let body: Value = serde_json::from_slice(&self.body).unwrap_or_default();
        body["data"]["submissionId"].as_str().unwrap_or_default().to_owned()
    }
}

#[derive(Debug, Default)]
struct Shared {
    received: Vec<Delivery>,
    refusals: usize,
    hung: Vec<Delivery>,
    hangs: usize,
}

/// A receiver on this machine.
#[derive(Debug, Clone)]
pub struct Receiver {
    /// The address for deliveries.
    pub url: String,
    shared: Arc<Mutex<Shared>>,
}

impl Receiver {
    /// Listens on a free port. The first `refusals` requests are answered 500.
    pub async fn listen(refusals: usize) -> Result<Self> {
        Self::with(Shared { refusals, ..Shared::default() }).await
    }

    /// Listens on a free port. The first `hangs` requests are read and never answered.
    pub async fn hanging(hangs: usize) -> Result<Self> {
        Self::with(Shared { hangs, ..Shared::default() }).await
    }

    async fn with(shared: Shared) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}/hook", listener.local_addr()?);
        let shared = Arc::new(Mutex::new(shared));
        let app = Router::new().fallback(receive).with_state(Arc::clone(&shared));
        tokio::spawn(async move { axum::serve(listener, app).await });
        Ok(Self { url, shared })
    }

    /// The requests that were read and have no response so far.
    pub fn hung(&self) -> Vec<Delivery> {
        self.shared.lock().map(|shared| shared.hung.clone()).unwrap_or_default()
    }

    /// The requests that were answered with 200 so far, in order.
    pub fn received(&self) -> Vec<Delivery> {
        self.shared.lock().map(|shared| shared.received.clone()).unwrap_or_default()
    }
}

async fn receive(State(shared): State<Arc<Mutex<Shared>>>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let hangs = {
        let Ok(mut shared) = shared.lock() else { return StatusCode::INTERNAL_SERVER_ERROR };
        if shared.refusals > 0 {
            shared.refusals -= 1;
            return StatusCode::INTERNAL_SERVER_ERROR;
        }
        let hangs = shared.hangs > 0;
        shared.hangs = shared.hangs.saturating_sub(1);
        let to = if hangs { &mut shared.hung } else { &mut shared.received };
        to.push(Delivery { headers, body });
        hangs
    };
    if hangs { std::future::pending().await } else { StatusCode::OK }
}
