//! Inner services that restart: requests wait for a connection, and none is sent twice unless it changes nothing.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::{Method, StatusCode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket};

use crate::harness::Edge;
use crate::upstream::Upstream;

/// Returns an address that refuses connections.
async fn unused() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
}

fn listen(address: SocketAddr) -> TcpListener {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_reuseaddr(true).unwrap();
    socket.bind(address).unwrap();
    socket.listen(100).unwrap()
}

/// A service that dies of requests: it reads them, counts them and closes their connections.
struct Closing {
    address: SocketAddr,
    requests: Arc<AtomicUsize>,
}

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

impl Closing {
    /// Answers this many requests first.
    async fn start(answers: usize) -> Self {
        Self::start_with_last(answers, "").await
    }

    /// Answers this many requests first, and ends the connections of others with `last`.
    async fn start_with_last(answers: usize, last: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&requests);
        tokio::spawn(async move {
            let mut left = answers;
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut buffer = [0; 4_096];
                while stream.read(&mut buffer).await.is_ok_and(|read| read > 0) {
                    counted.fetch_add(1, Ordering::SeqCst);
                    if left == 0 {
                        stream.write_all(last.as_bytes()).await.unwrap();
                        break;
                    }
                    left -= 1;
                    stream.write_all(OK.as_bytes()).await.unwrap();
                }
            }
        });
        Self { address, requests }
    }

    async fn edge(&self) -> Edge {
        Edge::with(&[&format!("upstreams.control_plane=http://{}", self.address)]).await
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

#[tokio::test]
async fn a_request_with_a_body_waits_while_the_service_restarts() {
    let address = unused().await;
    let set = [&*format!("upstreams.control_plane=http://{address}"), "upstreams.connect_retry=1m"];
    let edge = Edge::with(&set).await;
    let waiting = tokio::spawn({
        let visitor = edge.visitor.clone();
        async move { visitor.send(Method::POST, "localhost", "/api/pages", &[], "x".repeat(1 << 20)).await }
    });
    for _ in 0..10 {
        crate::harness::short_pause().await;
    }
    assert!(!waiting.is_finished());
    let restarted = Upstream::accept_from(listen(address));
    assert_eq!(waiting.await.unwrap().status, StatusCode::OK);
    assert_eq!((restarted.all().len(), restarted.last().body.len()), (1, 1 << 20));
}

#[tokio::test]
async fn a_service_at_two_addresses_is_reached_at_either() {
    let (up, down) = (Upstream::start().await, unused().await);
    for urls in [format!("http://{down},{}", up.url()), format!("{}, http://{down}", up.url())] {
        let edge = Edge::with(&[&format!("upstreams.control_plane={urls}")]).await;
        for _ in 0..5 {
            let response = edge.visitor.send(Method::POST, "localhost", "/api/pages", &[], "{}").await;
            assert_eq!(response.status, StatusCode::OK);
        }
    }
}

#[tokio::test]
async fn a_post_whose_connection_ends_is_not_sent_again() {
    for answered_before in [0, 1] {
        let service = Closing::start(answered_before).await;
        let edge = service.edge().await;
        for _ in 0..answered_before {
            assert_eq!(edge.visitor.get("localhost", "/api/pages").await.status, StatusCode::OK);
        }
        let response = edge.visitor.send(Method::POST, "localhost", "/api/pages", &[], "{}").await;
        let detail = response.problem(503, "unavailable")["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains("not known"), "{detail}");
        assert_eq!(service.requests(), answered_before + 1);
    }
}

#[tokio::test]
async fn a_get_whose_connection_ends_is_sent_once_more() {
    let service = Closing::start(0).await;
    let edge = service.edge().await;
    edge.visitor.get("localhost", "/api/pages").await.problem(503, "unavailable");
    assert_eq!(service.requests(), 2);
    let with_body = edge.visitor.send(Method::GET, "localhost", "/api/pages", &[], "{}").await;
    with_body.problem(503, "unavailable");
    assert_eq!(service.requests(), 3);
}

#[tokio::test]
async fn a_head_request_is_sent_once_more() {
    let service = Closing::start(0).await;
    let edge = service.edge().await;
    let response = edge.visitor.send(Method::HEAD, "localhost", "/api/pages", &[], "").await;
    assert_eq!((response.status, service.requests()), (StatusCode::SERVICE_UNAVAILABLE, 2));
}

#[tokio::test]
async fn a_get_with_effects_is_not_sent_again() {
    let service = Closing::start(0).await;
    let edge = service.edge().await;
    let paths =
        ["/api/automations/run/1/daily", "/api/automations/resume/1/2/3", "/api/auth/oauth/x/callback"];
    for (sent, path) in (1..).zip(paths) {
        let response = edge.visitor.get("localhost", path).await;
        let detail = response.problem(503, "unavailable")["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains("not known"), "{path}: {detail}");
        assert_eq!(service.requests(), sent, "{path}");
    }
}

#[tokio::test]
async fn a_get_whose_response_has_begun_is_not_sent_again() {
    for begun in ["H", "HTTP/1.1 200 OK\r\ncontent-le", "no HTTP at all\r\n\r\n"] {
        for answered_before in [0, 1] {
            let service = Closing::start_with_last(answered_before, begun).await;
            let edge = service.edge().await;
            for _ in 0..answered_before {
                assert_eq!(edge.visitor.get("localhost", "/api/pages").await.status, StatusCode::OK);
            }
            edge.visitor.get("localhost", "/api/pages").await.problem(503, "unavailable");
            assert_eq!(service.requests(), answered_before + 1, "{begun:?}");
        }
    }
}
