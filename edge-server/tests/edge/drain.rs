//! The drain on shutdown: clients are told to use another connection, and none of their requests fails.

use std::time::Duration;

use http::{Method, StatusCode};
use sandbox::test::until;
use service::config::{Listen, ProxyProtocol};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::connections::{HEAD, one_page, rest};
use crate::harness::{Edge, over_https};
use crate::tls_client::{SITE, TlsEdge, get};

/// Longer than any test takes.
const LONG: Duration = Duration::from_secs(600);

/// Starts an edge with one page and a drain that does not end.
async fn draining_for_long(set: &[&str]) -> Edge {
    let edge = Edge::listening(Listen { drain: LONG, ..Listen::default() }, set).await;
    edge.account("quiet-otter").await.page("index", "<p>x").await;
    edge
}

async fn get_page(stream: &mut TcpStream) -> String {
    stream.write_all(format!("{HEAD}\r\n").as_bytes()).await.unwrap();
    one_page(stream).await.to_lowercase()
}

#[tokio::test]
async fn during_the_drain_each_response_is_the_last_of_its_connection() {
    for fast_path in ["connections.fast_path=true", "connections.fast_path=false"] {
        let edge = draining_for_long(&[fast_path]).await;
        let (mut kept, mut idle) = (edge.visitor.connect().await, edge.visitor.connect().await);
        for stream in [&mut kept, &mut idle] {
            assert!(!get_page(stream).await.contains("connection: close"));
        }
        let gate = edge.control_plane.hold_responses();
        let mut running = edge.visitor.connect().await;
        running.write_all(b"GET /api/slow HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
        until(async || !edge.control_plane.all().is_empty()).await;

        edge.stop();
        // Until the edge has noticed, a response may still keep its connection open.
        until(async || {
            let mut new = edge.visitor.connect().await;
            get_page(&mut new).await.contains("connection: close\r\n") && rest(&mut new).await.is_empty()
        })
        .await;
        let response = get_page(&mut kept).await;
        assert!(
            response.contains("connection: close\r\n") && response.contains("x-cache: hit"),
            "{response}"
        );
        assert_eq!(rest(&mut kept).await, "");
        // The client has not seen the end of the connection yet, so its next request is served.
        let pipelined = format!("{HEAD}\r\n{HEAD}\r\n");
        idle.write_all(pipelined.as_bytes()).await.unwrap();
        let responses = rest(&mut idle).await;
        assert_eq!(responses.matches("<p>x").count(), 1, "only requests after the last response are lost");
        drop(gate);
        let response = rest(&mut running).await.to_lowercase();
        assert!(response.contains("connection: close\r\n") && response.contains("inside"), "{response}");
        let submitted = edge.visitor.send(Method::POST, "localhost", "/api/pages", &[], "{}").await;
        assert_eq!((submitted.status, submitted.header("connection")), (StatusCode::OK, "close"));
    }
}

#[tokio::test]
async fn http2_connections_are_told_to_end_and_none_of_their_requests_fails() {
    let edge = draining_for_long(&[]).await;
    let visitor = edge.visitor.over_http2();
    let host = edge.site_host("quiet-otter");
    let one = edge.visitor.http2().await;
    assert_eq!(one.get(&host, "/", &[]).await.text(), "<p>x");
    edge.stop();
    until(async || one.is_closed()).await;
    for _ in 0..20 {
        assert_eq!(visitor.get("", "/api/pages").await.status, StatusCode::OK);
    }
}

/// Checks that an edge with TLS accepts connections during the drain, and ends them.
async fn check_over_tls(listen: Listen, set: &[&str]) {
    let tls = TlsEdge::listening(Listen { drain: LONG, ..listen }, set).await;
    tls.edge.account("quiet-otter").await.page("index", "<p>x").await;
    let mut kept = tls.connect(SITE).await.unwrap();
    assert!(!get(&mut kept, SITE, "/").await.to_lowercase().contains("connection: close"));
    tls.edge.stop();
    until(async || tls.get(SITE, SITE, "/").await.to_lowercase().contains("connection: close")).await;
    let response = get(&mut kept, SITE, "/").await;
    assert!(response.to_lowercase().contains("connection: close") && response.contains("<p>x"), "{response}");
}

#[tokio::test]
async fn over_tls_new_connections_are_accepted_during_the_drain() {
    check_over_tls(over_https(), &[]).await;
}

#[tokio::test]
async fn behind_a_proxy_new_connections_are_accepted_over_tls_during_the_drain() {
    let required = ProxyProtocol::Required;
    check_over_tls(
        Listen { https_proxy_protocol: required, ..over_https() },
        &["http.trusted_proxies=[\"127.0.0.0/8\"]"],
    )
    .await;
}

#[tokio::test]
async fn a_connection_accepted_at_the_end_has_time_for_its_request() {
    let edge = Edge::start().await;
    edge.account("quiet-otter").await.page("index", "<p>x").await;
    let mut new = edge.visitor.connect().await;
    // Sent before the shutdown, so that the test needs no time of the edge's.
    new.write_all(format!("{HEAD}\r\n").as_bytes()).await.unwrap();
    edge.stop();
    assert!(one_page(&mut new).await.contains("<p>x"));
    until(async || TcpStream::connect(edge.visitor.address()).await.is_err()).await;
}

#[tokio::test]
async fn connections_are_accepted_while_a_request_runs_that_began_before_the_end_of_the_drain() {
    let listen = Listen { drain_timeout: LONG, ..Listen::default() };
    let edge = Edge::listening(listen, &[]).await;
    edge.account("quiet-otter").await.page("index", "<p>x").await;
    let gate = edge.control_plane.hold_responses();
    let mut running = edge.visitor.connect().await;
    running.write_all(b"GET /api/slow HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    until(async || !edge.control_plane.all().is_empty()).await;
    edge.stop();
    let mut last_responses = 0;
    while last_responses < 20 {
        let mut new = edge.visitor.connect().await;
        last_responses += usize::from(get_page(&mut new).await.contains("connection: close\r\n"));
    }
    drop(gate);
    let response = rest(&mut running).await;
    assert!(response.contains("inside"), "{response}");
    until(async || TcpStream::connect(edge.visitor.address()).await.is_err()).await;
}
