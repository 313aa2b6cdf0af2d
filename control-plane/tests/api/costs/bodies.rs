//! Slow large bodies: what they hold, they hold neither from small bodies nor for long.

use std::convert::Infallible;

use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use domain::plans::Plan;
use http::{HeaderMap, Method, Request, StatusCode};
use serde_json::{Value, json};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinHandle;

use crate::harness::{Api, exchange, send_to};

const BATCH: &str = "/api/pages/batch";

/// A body of 160 MB that stopped after two.
struct SlowBody {
    rest: Sender<Result<Bytes, Infallible>>,
    response: JoinHandle<(StatusCode, HeaderMap, Value)>,
}

async fn send_slowly(router: &Router, key: &str) -> SlowBody {
    let (rest, receiver) = channel(1);
    let stream = async |mut receiver: Receiver<_>| Some((receiver.recv().await?, receiver));
    let request = Request::post(BATCH)
        .header("authorization", format!("Bearer {key}"))
        .header("content-type", "application/json")
        .header("content-length", 160 << 20)
        .body(Body::from_stream(futures::stream::unfold(receiver, stream)))
        .unwrap();
    let response = tokio::spawn(exchange(router.clone(), request));
    // Each waits until the one before was read.
    for _ in 0..33 {
        rest.send(Ok(Bytes::from(vec![b' '; 64 << 10]))).await.unwrap();
    }
    SlowBody { rest, response }
}

/// A batch of as many pages of 512 KB.
fn pages(count: usize) -> Value {
    let html = "x".repeat(512 * 1024);
    let page = |at: usize| json!({"slug": format!("page-{at}"), "title": "T", "html": html});
    json!({"pages": (0..count).map(page).collect::<Vec<Value>>(), "upsert": true})
}

async fn send_pages(router: &Router, key: &str, count: usize) -> (StatusCode, Value) {
    send_to(router, Method::POST, BATCH, Some(key), &pages(count)).await
}

#[tokio::test]
async fn slow_bodies_announced_at_160_mb_keep_no_room_from_others() {
    let api = Api::start(&[]).await;
    let (first, second, other) = (api.trial().await, api.trial().await, api.trial_on(Plan::Scale).await.0);
    let router = api.replica(&["large_bodies.queue_timeout=500ms", "large_bodies.stall_timeout=2m"]);
    let slow = (send_slowly(&router, &first).await, send_slowly(&router, &second).await);
    let (status, response) = send_pages(&router, &other, 12).await;
    assert_eq!((status, &response["created"]), (StatusCode::OK, &json!(12)), "{response}");

    let (status, _) = send_pages(&router, &first, 1).await;
    assert_eq!(status, StatusCode::OK, "a small body of the same account");
    let (status, problem) = send_pages(&router, &first, 12).await;
    assert_eq!((status, &problem["code"]), (StatusCode::SERVICE_UNAVAILABLE, &json!("unavailable")));
    assert!(problem["detail"].as_str().unwrap().contains("another large request of this account"));
    drop(slow);
    sandbox::test::until(async || send_pages(&router, &first, 12).await.0 == StatusCode::OK).await;
}

#[tokio::test]
async fn two_accounts_that_hold_all_room_for_large_bodies_keep_no_small_body_waiting() {
    let api = Api::start(&[]).await;
    let (first, second, other) = (api.trial().await, api.trial().await, api.trial_on(Plan::Scale).await.0);
    let router = api.replica(&[
        "large_bodies.max_in_flight_mib=4",
        "large_bodies.queue_timeout=500ms",
        "large_bodies.stall_timeout=2m",
    ]);
    let slow = (send_slowly(&router, &first).await, send_slowly(&router, &second).await);
    let (status, problem) = send_pages(&router, &other, 12).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(problem["detail"].as_str().unwrap().contains("too many large requests"), "{problem}");
    let (status, response) = send_pages(&router, &other, 1).await;
    assert_eq!((status, &response["created"]), (StatusCode::OK, &json!(1)), "{response}");
    drop(slow);
}

#[tokio::test]
async fn a_large_body_that_stops_gives_its_room_back_long_before_the_receive_timeout() {
    let api = Api::start(&[]).await;
    let (slow, other) = (api.trial().await, api.trial_on(Plan::Scale).await.0);
    let router = api.replica(&[
        "large_bodies.max_in_flight_mib=2",
        "large_bodies.queue_timeout=60s",
        "large_bodies.stall_timeout=2s",
        "large_bodies.receive_timeout=1h",
    ]);
    let SlowBody { rest, response } = send_slowly(&router, &slow).await;
    // It waits for the room of the slow one.
    let (status, created) = send_pages(&router, &other, 12).await;
    assert_eq!((status, &created["created"]), (StatusCode::OK, &json!(12)), "{created}");
    let (status, headers, problem) = response.await.unwrap();
    assert_eq!(
        (status, &problem["code"], headers.contains_key("retry-after")),
        (StatusCode::SERVICE_UNAVAILABLE, &json!("unavailable"), true)
    );
    assert_eq!(problem["detail"], "the body arrived too slowly; nothing was changed");
    drop(rest);
    let (_, listed) = api.send(Method::GET, "/api/pages", Some(&slow), &Value::Null).await;
    assert_eq!(listed["pages"], json!([]));
}
