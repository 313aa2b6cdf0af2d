//! No answer takes more memory or time than allowed, however it is served.

use std::time::{Duration, Instant};

use axum::Router;
use outbound::{Client, Request};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::support::{class, config, get_at, local, raw, serve, silent_after, without_end};

fn whole(request: Request) -> Request {
    Request { whole_body: true, ..request }
}

fn brief(request: Request) -> Request {
    Request { timeout: Some(Duration::from_millis(300)), ..request }
}

#[tokio::test]
async fn of_an_endless_body_only_the_beginning_is_read() {
    let endless = without_end("HTTP/1.1 200 OK\r\n\r\n").await;
    let response = local().send(get_at(endless)).await.unwrap();
    assert_eq!((response.status.as_u16(), response.body.len(), response.truncated), (200, 1_000, true));
    assert_eq!(class(local().send(whole(get_at(endless))).await), "too_large");
}

#[tokio::test]
async fn of_a_gigabyte_only_the_beginning_is_read() {
    let gigabyte = without_end("HTTP/1.1 500 Oops\r\ncontent-length: 1073741824\r\n\r\n").await;
    let began = Instant::now();
    let response = local().send(get_at(gigabyte)).await.unwrap();
    assert_eq!((response.status.as_u16(), response.body.len(), response.truncated), (500, 1_000, true));
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn a_body_of_just_the_allowed_size_is_whole() {
    let app = Router::new().fallback(|| async { vec![b'x'; 1_000] });
    let response = local().send(whole(get_at(serve(app).await))).await.unwrap();
    assert_eq!((response.body.len(), response.truncated), (1_000, false));
}

#[tokio::test]
async fn a_body_that_dribbles_is_left_when_the_time_is_up_and_its_status_counts() {
    let slow = silent_after("HTTP/1.1 202 Accepted\r\ncontent-length: 100\r\n\r\nbegin").await;
    let began = Instant::now();
    let response = local().send(brief(get_at(slow))).await.unwrap();
    assert_eq!(
        (response.status.as_u16(), &response.body[..], response.truncated),
        (202, &b"begin"[..], true)
    );
    assert!(
        response.elapsed_ms >= 300 && began.elapsed() < Duration::from_secs(5),
        "{}",
        response.elapsed_ms
    );
    assert_eq!(class(local().send(whole(brief(get_at(slow)))).await), "timeout");
}

#[tokio::test]
async fn a_body_that_breaks_off_says_no_less_than_its_status_did() {
    let broken = raw(async move |mut stream: TcpStream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nbegin").await
    })
    .await;
    let response = local().send(get_at(broken)).await.unwrap();
    assert_eq!(
        (response.status.as_u16(), &response.body[..], response.truncated),
        (200, &b"begin"[..], true)
    );
    assert_eq!(class(local().send(whole(get_at(broken))).await), "protocol");
}

#[tokio::test]
async fn whoever_never_answers_or_never_ends_its_headers_times_out() {
    for text in ["", "HTTP/1.1 200 OK\r\nx-slow: "] {
        let silent = silent_after(text).await;
        assert_eq!(class(local().send(brief(get_at(silent))).await), "timeout", "{text:?}");
    }
}

#[tokio::test]
async fn a_callers_timeout_can_only_shorten_the_clients_own() {
    let client = Client::new(outbound::Config {
        total_timeout: Duration::from_millis(200),
        ..config(&["127.0.0.0/8"])
    });
    let patient = Request { timeout: Some(Duration::from_secs(3_600)), ..get_at(silent_after("").await) };
    assert_eq!(class(client.unwrap().send(patient).await), "timeout");
}

#[tokio::test]
async fn endless_headers_are_given_up() {
    let endless = without_end("HTTP/1.1 200 OK\r\nx: ").await;
    assert_eq!(class(local().send(get_at(endless)).await), "protocol");
}

#[tokio::test]
async fn a_compressed_answer_is_not_blown_up() {
    let app = Router::new().fallback(|| async { ([("content-encoding", "gzip")], "not even gzip") });
    let response = local().send(get_at(serve(app).await)).await.unwrap();
    assert_eq!(&response.body[..], b"not even gzip");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_dead_endpoints_hold_up_no_healthy_one() {
    let client = local();
    let dead = raw(async |_stream| std::future::pending().await).await;
    let healthy = serve(Router::new().fallback(|| async { "ok" })).await;
    let hanging: Vec<_> = (0..100)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(async move { client.send(get_at(dead)).await })
        })
        .collect();
    let calls = (0..200).map(|_| client.send(get_at(healthy)));
    let answers = futures::future::join_all(calls).await;
    assert!(answers.iter().all(|answer| answer.as_ref().is_ok_and(|response| response.status.is_success())));
    assert!(hanging.iter().all(|call| !call.is_finished()), "the dead ones are still being waited for");
    hanging.into_iter().for_each(|call| call.abort());
}
