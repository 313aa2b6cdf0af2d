//! Clients that read their response slowly, or not at all.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::routing::get;
use service::http::serve_with_stall_timeout;
use service::{Listeners, Shutdown};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// More than the system buffers for a connection.
const BODY_BYTES: usize = 64 << 20;

/// Serves a large body in chunks, each of which holds `held`. Returns a client that has requested it.
async fn requested(held: &Arc<()>, stall_timeout: Duration) -> TcpStream {
    let (held, shutdown) = (Arc::downgrade(held), Shutdown::new());
    let handler = async move || {
        let Some(held) = held.upgrade() else { return Body::empty() };
        let chunks = (0..BODY_BYTES >> 16).map(move |_| {
            let _held = &held;
            Ok::<_, std::io::Error>(Bytes::from_static(&[b'x'; 1 << 16]))
        });
        Body::from_stream(futures::stream::iter(chunks))
    };
    let app = Router::new().route("/", get(handler));
    let listeners = Listeners::on_free_ports().unwrap();
    let address = listeners.main.local_addr().unwrap();
    tokio::spawn(serve_with_stall_timeout(listeners.main, app, shutdown, listeners.drain, stall_timeout));
    let mut client = TcpStream::connect(address).await.unwrap();
    client.write_all(b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await.unwrap();
    client
}

#[tokio::test]
async fn a_client_that_reads_nothing_is_disconnected_and_its_response_freed() {
    let held = Arc::new(());
    let mut client = requested(&held, Duration::from_millis(100)).await;
    let freed = async {
        // The handler holds it once it runs, and the body until it is dropped.
        while Arc::strong_count(&held) == 1 {
            tokio::task::yield_now().await;
        }
        while Arc::strong_count(&held) > 1 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), freed).await.unwrap();
    let mut received = Vec::new();
    let read = client.read_to_end(&mut received).await;
    assert!(read.is_err() || received.len() < BODY_BYTES, "the rest was never sent");
}

#[tokio::test]
async fn a_client_that_reads_on_receives_the_whole_response() {
    let held = Arc::new(());
    let mut client = requested(&held, Duration::from_secs(30)).await;
    let mut received = Vec::new();
    client.read_to_end(&mut received).await.unwrap();
    assert!(received.len() > BODY_BYTES, "with its head");
}
