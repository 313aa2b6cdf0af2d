//! The inner port and the inner server, over real connections.
#![expect(clippy::unwrap_used, reason = "a test's own plumbing may fail loudly")]

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use axum::routing::get;
use service::{Lifecycle, Listeners, Readiness, Shutdown, metrics};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// One request on a connection of its own; the whole answer as text.
async fn ask(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: inside\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn readiness_follows_its_checks_and_turns_false_while_draining() {
    let listeners = Listeners::on_free_ports().unwrap();
    let ops = listeners.ops.local_addr().unwrap();
    let shutdown = Shutdown::new();
    let readiness = Readiness::new(&shutdown);
    let (postgres, redis) = (readiness.register("postgres"), readiness.register("redis"));
    let mut lifecycle = Lifecycle::new(shutdown.clone());
    let (release, held) = tokio::sync::oneshot::channel::<()>();
    lifecycle.spawn("drains", async move { Ok(held.await?) });
    lifecycle.spawn_last("ops", service::ops::serve(listeners.ops, readiness, lifecycle.drained()));
    let running = tokio::spawn(lifecycle.run(Duration::from_secs(5)));

    assert!(ask(ops, "/healthz").await.starts_with("HTTP/1.1 200"));
    let answer = ask(ops, "/readyz").await;
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
    assert!(answer.contains(r#""postgres":{"ok":false,"reason":"not tried yet"}"#), "{answer}");
    postgres.ok();
    redis.failed("connection refused");
    assert!(ask(ops, "/readyz").await.contains(r#""redis":{"ok":false,"reason":"connection refused"}"#));
    redis.ok();
    let answer = ask(ops, "/readyz").await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");

    shutdown.request();
    let answer = ask(ops, "/readyz").await;
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains(r#""shutting_down":true"#), "{answer}");
    release.send(()).unwrap();
    running.await.unwrap().unwrap();
    assert!(TcpStream::connect(ops).await.is_err(), "the port is closed once all has drained");
}

#[tokio::test]
async fn metrics_show_each_name_once_as_written_with_the_process_own_figures() {
    metrics::counter("test_event_dropped_total").add(2, &[("reason", "bot")]);
    metrics::counter("test_event_dropped_total").add(1, &[("reason", "bot")]);
    metrics::histogram("test_attempt_duration_ms").record_elapsed(Duration::from_millis(7), &[]);
    metrics::gauge("test_queue_depth").set(4.0, &[]);
    let text = metrics::render();
    assert!(text.contains("test_event_dropped_total{reason=\"bot\"} 3"), "{text}");
    assert!(!text.contains("_total_total"), "{text}");
    assert!(text.contains("test_attempt_duration_ms_bucket{le=\"10\"} 1"), "{text}");
    assert!(text.contains("test_queue_depth 4"), "{text}");
    assert!(text.contains("process_resident_memory_bytes"), "{text}");
}

#[tokio::test]
async fn a_request_under_way_is_answered_after_shutdown_was_asked_for() {
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
    let server = tokio::spawn(service::http::serve(listeners.main, app, shutdown.clone()));
    let request = tokio::spawn(async move { ask(address, "/slow").await });
    seen.recv().await.unwrap();
    shutdown.request();
    gate.request();
    let answer = request.await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("127.0.0.1"), "{answer}");
    server.await.unwrap().unwrap();
}
