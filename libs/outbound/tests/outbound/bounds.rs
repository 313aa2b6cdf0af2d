//! No response uses more memory or time than allowed, however the server sends it.

use std::time::{Duration, Instant};

use axum::Router;
use outbound::{Client, Request};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::support::{class, config, get_at, local, raw, serve, silent_after, without_end};

fn whole_body(request: Request) -> Request {
    Request { whole_body: true, ..request }
}

fn with_short_timeout(request: Request) -> Request {
    Request { timeout: Some(Duration::from_millis(300)), ..request }
}

#[tokio::test]
async fn only_the_beginning_of_an_endless_body_is_read() {
    let endless = without_end("HTTP/1.1 200 OK\r\n\r\n").await;
    let response = local().send(get_at(endless)).await.unwrap();
    assert_eq!((response.status.as_u16(), response.body.len(), response.truncated), (200, 1_000, true));
    assert_eq!(class(local().send(whole_body(get_at(endless))).await), "too_large");
}

#[tokio::test]
async fn only_the_beginning_of_a_gigabyte_is_read() {
    let gigabyte = without_end("HTTP/1.1 500 Oops\r\ncontent-length: 1073741824\r\n\r\n").await;
    let started = Instant::now();
    let response = local().send(get_at(gigabyte)).await.unwrap();
    assert_eq!((response.status.as_u16(), response.body.len(), response.truncated), (500, 1_000, true));
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn a_body_of_exactly_the_allowed_size_is_complete() {
    let app = Router::new().fallback(|| async { vec![b'x'; 1_000] });
    let response = local().send(whole_body(get_at(serve(app).await))).await.unwrap();
    assert_eq!((response.body.len(), response.truncated), (1_000, false));
}

#[tokio::test]
async fn a_slow_body_is_truncated_at_the_timeout_and_its_status_counts() {
    let slow = silent_after("HTTP/1.1 202 Accepted\r\ncontent-length: 100\r\n\r\nbegin").await;
    let started = Instant::now();
    let response = local().send(with_short_timeout(get_at(slow))).await.unwrap();
    assert_eq!(
        (response.status.as_u16(), &response.body[..], response.truncated),
        (202, &b"begin"[..], true)
    );
    assert!(
        response.elapsed_ms >= 300 && started.elapsed() < Duration::from_secs(5),
        "{}",
        response.elapsed_ms
    );
    assert_eq!(class(local().send(whole_body(with_short_timeout(get_at(slow)))).await), "timeout");
}

#[tokio::test]
async fn an_interrupted_body_is_truncated_and_its_status_counts() {
    let interrupted = raw(async move |mut stream: TcpStream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nbegin").await
    })
    .await;
    let response = local().send(get_at(interrupted)).await.unwrap();
    assert_eq!(
        (response.status.as_u16(), &response.body[..], response.truncated),
        (200, &b"begin"[..], true)
    );
    assert_eq!(class(local().send(whole_body(get_at(interrupted))).await), "protocol");
}

#[tokio::test]
async fn a_server_that_never_responds_or_never_ends_its_headers_times_out() {
    for text in ["", "HTTP/1.1 200 OK\r\nx-slow: "] {
        let silent = silent_after(text).await;
        assert_eq!(class(local().send(with_short_timeout(get_at(silent))).await), "timeout", "{text:?}");
    }
}

#[tokio::test]
async fn a_callers_timeout_can_only_shorten_the_clients_own() {
    let client = Client::new(outbound::Config {
        total_timeout: Duration::from_millis(200),
        ..config(&["127.0.0.0/8"])
    });
    let request = Request { timeout: Some(Duration::from_secs(3_600)), ..get_at(silent_after("").await) };
    assert_eq!(class(client.unwrap().send(request).await), "timeout");
}

#[tokio::test]
async fn endless_headers_fail_the_call() {
    let endless = without_end("HTTP/1.1 200 OK\r\nx: ").await;
    assert_eq!(class(local().send(get_at(endless)).await), "protocol");
}

#[tokio::test]
async fn a_compressed_response_is_not_decompressed() {
    let app = Router::new().fallback(|| async { ([("content-encoding", "gzip")], "not even gzip") });
    let response = local().send(get_at(serve(app).await)).await.unwrap();
    assert_eq!(&response.body[..], b"not even gzip");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_unresponsive_servers_delay_no_healthy_one() {
    let client = local();
    let unresponsive = raw(async |_stream| std::future::pending().await).await;
    let healthy = serve(Router::new().fallback(|| async { "ok" })).await;
    let hanging: Vec<_> = (0..100)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.send(get_at(unresponsive)).await })
        })
        .collect();
    let calls = (0..200).map(|_| client.send(get_at(healthy)));
    let responses = futures::future::join_all(calls).await;
    assert!(
        responses.iter().all(|response| response.as_ref().is_ok_and(|response| response.status.is_success()))
    );
    assert!(hanging.iter().all(|call| !call.is_finished()), "the calls to unresponsive servers still wait");
    hanging.into_iter().for_each(|call| call.abort());
}
