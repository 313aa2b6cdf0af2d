//! The drain on shutdown: connections are accepted on, told to end, and none that was accepted by the system is reset.

#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::ConnectInfo;
use axum::routing::get;
use futures::StreamExt as _;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use service::{Accepting, Drain, Draining, Lifecycle, Listeners, Readiness, Shutdown};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// Longer than any test takes.
const LONG: Duration = Duration::from_secs(600);
const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: inside\r\n\r\n";

struct Server {
    address: SocketAddr,
    shutdown: Shutdown,
    ended: JoinHandle<anyhow::Result<()>>,
}

/// Serves the client's address at `/`, and nothing within a test at `/never`.
fn serve(drain: Drain) -> Server {
    let app = Router::new()
        .route("/", get(|ConnectInfo(peer): ConnectInfo<SocketAddr>| async move { peer.to_string() }))
        .route("/never", get(std::future::pending::<()>))
        .route(
            "/streamed",
            get(|| async {
                let frames = futures::stream::iter([Ok::<_, Infallible>("127.0.0.1")]);
                Body::from_stream(frames.chain(futures::stream::pending()))
            }),
        );
    serve_app(app, drain)
}

fn serve_app(app: Router, drain: Drain) -> Server {
    let (listeners, shutdown) = (Listeners::on_free_ports().unwrap(), Shutdown::new());
    let address = listeners.main.local_addr().unwrap();
    let ended = tokio::spawn(service::http::serve(listeners.main, app, shutdown.clone(), drain));
    Server { address, shutdown, ended }
}

/// Sends a request over an open connection and returns the response's head and body.
async fn exchange(stream: &mut TcpStream) -> String {
    stream.write_all(REQUEST).await.unwrap();
    let mut response = Vec::with_capacity(4_096);
    while !String::from_utf8_lossy(&response).contains("127.0.0.1") {
        assert_ne!(stream.read_buf(&mut response).await.unwrap(), 0);
    }
    String::from_utf8(response).unwrap()
}

async fn is_closed(mut stream: TcpStream) -> bool {
    stream.read(&mut [0]).await.unwrap() == 0
}

#[tokio::test]
async fn during_the_drain_each_response_is_the_last_of_its_connection() {
    let server = serve(Drain { period: LONG, timeout: LONG });
    let (mut kept, mut idle) = (
        TcpStream::connect(server.address).await.unwrap(),
        TcpStream::connect(server.address).await.unwrap(),
    );
    for stream in [&mut kept, &mut idle] {
        assert!(!exchange(stream).await.contains("connection: close"));
    }
    server.shutdown.request();
    let response = exchange(&mut kept).await;
    assert!(response.contains("connection: close\r\n"), "{response}");
    assert!(is_closed(kept).await);
    let mut new = TcpStream::connect(server.address).await.unwrap();
    let response = exchange(&mut new).await;
    assert!(response.contains("connection: close\r\n"), "{response}");
    assert!(is_closed(new).await);
    let response = exchange(&mut idle).await;
    assert!(response.contains("connection: close\r\n"), "an idle connection is usable: {response}");
    assert!(!server.ended.is_finished());
}

#[tokio::test]
async fn an_http2_connection_is_told_to_end_at_once() {
    let server = serve(Drain { period: LONG, timeout: LONG });
    let client = Client::builder(TokioExecutor::new()).http2_only(true).build_http::<Body>();
    let peer = async || {
        let response = client.get(format!("http://{}/", server.address).parse().unwrap()).await.unwrap();
        axum::body::to_bytes(Body::new(response.into_body()), 100).await.unwrap()
    };
    let first = peer().await;
    assert_eq!(peer().await, first, "one connection serves both");
    server.shutdown.request();
    // The client learns of the end from a frame.
    while peer().await == first {
        tokio::task::yield_now().await;
    }
    let (one, other) = (peer().await, peer().await);
    assert!(one != first && other != first, "each request has a connection that accepts it");
}

#[tokio::test]
async fn idle_connections_end_after_the_drain_and_running_requests_after_its_timeout() {
    let drain = Drain { period: Duration::ZERO, timeout: Duration::from_millis(1_500) };
    let server = serve(drain);
    let mut idle = TcpStream::connect(server.address).await.unwrap();
    exchange(&mut idle).await;
    let mut running = TcpStream::connect(server.address).await.unwrap();
    running.write_all(b"GET /never HTTP/1.1\r\nhost: inside\r\n\r\n").await.unwrap();
    server.shutdown.request();
    assert!(is_closed(idle).await);
    assert!(!server.ended.is_finished(), "a request is running");
    let mut response = Vec::new();
    let _reset = running.read_to_end(&mut response).await;
    assert!(response.is_empty());
    server.ended.await.unwrap().unwrap();
    assert!(TcpStream::connect(server.address).await.is_err());
}

#[tokio::test]
async fn an_interrupt_skips_the_drain() {
    let server = serve(Drain { period: LONG, timeout: LONG });
    server.shutdown.request_without_drain();
    server.ended.await.unwrap().unwrap();
}

#[tokio::test]
async fn connections_in_the_queue_are_served_and_later_ones_reach_the_next_process() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut waiting = Vec::new();
    for _ in 0..20 {
        waiting.push(TcpStream::connect(address).await.unwrap());
    }
    let shutdown = Shutdown::new();
    shutdown.request();
    let mut accepting = Accepting::new(listener, &Draining::new(Drain::default(), &shutdown)).unwrap();
    let (first, _) = accepting.next().await.unwrap();
    // The socket takes no more, so this one is not lost when it closes.
    let later = tokio::spawn(TcpStream::connect(address));
    let mut accepted = vec![first];
    while let Some((stream, _)) = accepting.next().await {
        accepted.push(stream);
    }
    assert_eq!(accepted.len(), waiting.len());
    if cfg!(target_os = "linux") {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.set_reuseaddr(true).unwrap();
        socket.bind(address).unwrap();
        let _next_process = socket.listen(10).unwrap();
        later.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_connection_accepted_at_the_end_has_time_for_its_request() {
    let server = serve(Drain { timeout: LONG, ..Drain::default() });
    let mut new = TcpStream::connect(server.address).await.unwrap();
    // Sent before the shutdown, so that the test needs no time of the server's.
    new.write_all(REQUEST).await.unwrap();
    server.shutdown.request();
    let mut response = String::new();
    new.read_to_string(&mut response).await.unwrap();
    assert!(response.contains("connection: close\r\n") && response.contains("127.0.0.1"), "{response}");
    server.ended.await.unwrap().unwrap();
}

#[tokio::test]
async fn connections_are_accepted_while_a_request_runs_that_began_before_the_end_of_the_drain() {
    let server = serve(Drain { timeout: LONG, ..Drain::default() });
    let mut running = TcpStream::connect(server.address).await.unwrap();
    running.write_all(b"GET /streamed HTTP/1.1\r\nhost: inside\r\n\r\n").await.unwrap();
    let mut begun = Vec::new();
    while !String::from_utf8_lossy(&begun).contains("127.0.0.1") {
        assert_ne!(running.read_buf(&mut begun).await.unwrap(), 0);
    }
    server.shutdown.request();
    let mut last_responses = 0;
    while last_responses < 20 {
        let mut new = TcpStream::connect(server.address).await.unwrap();
        last_responses += usize::from(exchange(&mut new).await.contains("connection: close\r\n"));
    }
    assert!(!server.ended.is_finished());
    drop(running);
    server.ended.await.unwrap().unwrap();
    assert!(TcpStream::connect(server.address).await.is_err());
}

#[tokio::test]
async fn a_response_that_streams_during_the_drain_is_sent_to_its_end() {
    let (frames, streamed) = futures::channel::mpsc::unbounded::<Result<Bytes, Infallible>>();
    let body = Arc::new(Mutex::new(Some(Body::from_stream(streamed))));
    let take = async move || body.lock().unwrap().take().unwrap();
    let server = serve_app(Router::new().route("/", get(take)), Drain { timeout: LONG, ..Drain::default() });
    let mut reader = TcpStream::connect(server.address).await.unwrap();
    reader.write_all(REQUEST).await.unwrap();
    frames.unbounded_send(Ok(Bytes::from("before the drain"))).unwrap();
    let mut response = Vec::new();
    while !response.ends_with(b"before the drain\r\n") {
        assert_ne!(reader.read_buf(&mut response).await.unwrap(), 0);
    }
    server.shutdown.request();
    // New connections are told to end: the drain has begun.
    loop {
        let mut other = TcpStream::connect(server.address).await.unwrap();
        other.write_all(b"GET /other HTTP/1.1\r\nhost: inside\r\n\r\n").await.unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            assert_ne!(other.read_buf(&mut answer).await.unwrap(), 0);
        }
        if String::from_utf8_lossy(&answer).contains("connection: close\r\n") {
            break;
        }
    }
    for _ in 0..100 {
        frames.unbounded_send(Ok(Bytes::from("0123456789"))).unwrap();
    }
    drop(frames);
    reader.read_to_end(&mut response).await.unwrap();
    let response = String::from_utf8(response).unwrap();
    assert_eq!(response.matches("0123456789").count(), 100, "{response}");
    assert!(response.ends_with("0\r\n\r\n"), "the last chunk is missing: {response}");
    server.ended.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_connection_whose_client_was_not_told_is_open_for_one_more_request() {
    let server = serve(Drain { period: Duration::from_millis(1), timeout: LONG });
    let (mut unused, mut idle) = (
        TcpStream::connect(server.address).await.unwrap(),
        TcpStream::connect(server.address).await.unwrap(),
    );
    exchange(&mut idle).await;
    let sent = Instant::now();
    server.shutdown.request();
    let mut told = TcpStream::connect(server.address).await.unwrap();
    while !exchange(&mut told).await.contains("connection: close\r\n") {}
    for stream in [&mut unused, &mut idle] {
        assert!(exchange(stream).await.contains("connection: close\r\n"), "after {:?}", sent.elapsed());
    }
    server.ended.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_service_with_a_dead_component_does_not_drain() {
    let mut lifecycle = Lifecycle::new(Shutdown::new());
    let (listeners, drain) = (Listeners::on_free_ports().unwrap(), Drain { period: LONG, timeout: LONG });
    let server = service::http::serve(listeners.main, Router::new(), lifecycle.shutdown(), drain);
    lifecycle.spawn_server("api", drain, server);
    lifecycle.spawn("relay", async { anyhow::bail!("lost its database") });
    let outcome = lifecycle.run(LONG).await.unwrap_err();
    assert_eq!(outcome.to_string(), "component `relay` died: lost its database");
}

#[tokio::test]
async fn components_that_requests_need_end_after_the_servers() {
    let shutdown = Shutdown::new();
    let readiness = Readiness::new(&shutdown);
    let mut lifecycle = Lifecycle::new(shutdown.clone());
    let (stop, needed) = (lifecycle.stop(), Arc::new(AtomicBool::new(true)));
    let is_needed = Arc::clone(&needed);
    lifecycle.spawn("group commit", async move {
        stop.requested().await;
        is_needed.store(false, Ordering::SeqCst);
        Ok(())
    });
    let (release, held) = tokio::sync::oneshot::channel::<()>();
    lifecycle.spawn_server("api", Drain::default(), async move { Ok(held.await?) });
    let (is_needed, drained) = (Arc::clone(&needed), lifecycle.drained());
    lifecycle.spawn_last("ops", async move {
        drained.requested().await;
        assert!(!is_needed.load(Ordering::SeqCst));
        Ok(())
    });
    let running = tokio::spawn(lifecycle.run(Duration::from_secs(60)));
    shutdown.request();
    assert!(!readiness.report().ready);
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert!(needed.load(Ordering::SeqCst), "a request is still running");
    release.send(()).unwrap();
    running.await.unwrap().unwrap();
    assert!(!needed.load(Ordering::SeqCst));
}
