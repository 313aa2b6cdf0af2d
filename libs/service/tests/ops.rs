//! The ops endpoints and the HTTP server, over real connections.
#![expect(clippy::unwrap_used, reason = "a test's own plumbing may fail loudly")]

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use axum::routing::get;
use chrono::TimeDelta;
use service::metrics::{self, Counter, Gauge, Histogram};
use service::{Clock, Lifecycle, Listeners, Readiness, Shutdown};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Sends one request over a new connection and returns the whole response as text.
async fn get_text(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: inside\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    response
}

#[tokio::test]
async fn readiness_follows_its_checks_and_is_false_while_draining() {
    let listeners = Listeners::on_free_ports().unwrap();
    let ops = listeners.ops.local_addr().unwrap();
    let shutdown = Shutdown::new();
    let readiness = Readiness::new(&shutdown);
    let (postgres, redis) = (readiness.register("postgres"), readiness.register("redis"));
    let _store = readiness.register_store("clickhouse");
    let mut lifecycle = Lifecycle::new(shutdown.clone());
    let (release, held) = tokio::sync::oneshot::channel::<()>();
    lifecycle.spawn("drains", async move { Ok(held.await?) });
    lifecycle.spawn_last("ops", service::ops::serve(listeners.ops, readiness, lifecycle.drained()));
    let running = tokio::spawn(lifecycle.run(Duration::from_secs(5)));

    assert!(get_text(ops, "/healthz").await.starts_with("HTTP/1.1 200"));
    let response = get_text(ops, "/readyz").await;
    assert!(response.starts_with("HTTP/1.1 503"), "{response}");
    assert!(response.contains(r#""postgres":{"ok":false,"reason":"not checked yet"}"#), "{response}");
    postgres.ok();
    redis.failed("connection refused");
    assert!(get_text(ops, "/readyz").await.contains(r#""redis":{"ok":false,"reason":"connection refused"}"#));
    redis.ok();
    let response = get_text(ops, "/readyz").await;
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
    assert!(response.contains(r#""clickhouse":{"ok":false"#), "a store is only reported: {response}");

    shutdown.request();
    let response = get_text(ops, "/readyz").await;
    assert!(
        response.starts_with("HTTP/1.1 503") && response.contains(r#""shutting_down":true"#),
        "{response}"
    );
    release.send(()).unwrap();
    running.await.unwrap().unwrap();
    assert!(TcpStream::connect(ops).await.is_err(), "the port is closed after draining");
}

#[tokio::test]
async fn metrics_have_their_exact_names_and_include_the_process() {
    static DROPPED: Counter =
        Counter::new("test_event_dropped_total", "Dropped.", &[("reason", || vec!["bot"])]);
    static ATTEMPT: Histogram = Histogram::new("test_attempt_seconds", "Attempts.");
    static DEPTH: Gauge = Gauge::new("test_queue_depth", "Depth.");
    DROPPED.add(2, &[("reason", "bot")]);
    DROPPED.add(1, &[("reason", "bot")]);
    ATTEMPT.record(Duration::from_micros(20), &[]);
    DEPTH.set(4.0, &[]);
    let text = metrics::render();
    assert!(text.contains("test_event_dropped_total{reason=\"bot\"} 3"), "{text}");
    assert!(!text.contains("_total_total"), "{text}");
    assert!(text.contains("test_attempt_seconds_bucket{le=\"0.000025\"} 1"), "{text}");
    assert!(text.contains("test_queue_depth 4"), "{text}");
    assert!(text.contains("process_resident_memory_bytes"), "{text}");
}

#[test]
fn a_machine_whose_clock_is_off_is_measured() {
    const NAME: &str = "webruntime_clock_offset_seconds";
    let clock = Clock::remote();
    let offset = || -> f64 {
        let text = metrics::render();
        assert!(text.contains(&format!("# HELP {NAME} How far ")), "{text}");
        let value = text.lines().find_map(|line| line.strip_prefix(NAME)?.strip_prefix(' '));
        value.unwrap_or_else(|| panic!("{text}")).parse().unwrap()
    };
    clock.follow(Clock::system().now() - TimeDelta::hours(1));
    assert!((3_600.0..3_660.0).contains(&offset()), "it is ahead: {}", offset());
    clock.follow(Clock::system().now() + TimeDelta::hours(1));
    assert!((-3_600.0..-3_540.0).contains(&offset()), "it is behind: {}", offset());
}

#[tokio::test]
async fn a_running_request_completes_after_shutdown_was_requested() {
    let listeners = Listeners::on_free_ports().unwrap();
    let address = listeners.main.local_addr().unwrap();
    let shutdown = Shutdown::new();
    let (entered, mut seen) = tokio::sync::mpsc::channel::<()>(1);
    let gate = Shutdown::new();
    let opened = gate.clone();
    let app = Router::new().route(
        "/slow",
        get(move |ConnectInfo(peer): ConnectInfo<SocketAddr>| async move {
            entered.send(()).await.unwrap();
            opened.requested().await;
            peer.ip().to_string()
        }),
    );
    let server = tokio::spawn(service::http::serve(listeners.main, app, shutdown.clone(), listeners.drain));
    let request = tokio::spawn(async move { get_text(address, "/slow").await });
    seen.recv().await.unwrap();
    shutdown.request();
    gate.request();
    let response = request.await.unwrap();
    assert!(response.starts_with("HTTP/1.1 200") && response.ends_with("127.0.0.1"), "{response}");
    server.await.unwrap().unwrap();
}
