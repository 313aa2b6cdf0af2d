//! Request smuggling: a request that two parsers may read differently must reach the upstream as one request.

use http::Method;

use crate::harness::Edge;

/// A request that an attacker tries to smuggle to the upstream.
const HIDDEN: &str = "GET /api/smuggled HTTP/1.1\r\nHost: localhost\r\nX-Edge-Token: x\r\n\r\n";

/// Sends the attack, then requests of another visitor over the same upstream connections.
async fn attack(edge: &Edge, request: &str) -> String {
    let response = edge.visitor.raw(request.as_bytes()).await;
    for _ in 0..3 {
        let innocent = edge.visitor.send(Method::POST, "localhost", "/api/innocent", &[], "mine").await;
        assert_eq!(innocent.text(), "from the inside");
        let received = edge.control_plane.last();
        assert_eq!((received.target.as_str(), &received.body[..]), ("/api/innocent", &b"mine"[..]));
    }
    let smuggled = edge.control_plane.all().into_iter().find(|one| one.target.contains("smuggled"));
    assert!(smuggled.is_none(), "{request:?}: {smuggled:?}");
    response
}

fn post(headers: &str, body: &str) -> String {
    format!("POST /api/x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n{body}")
}

#[tokio::test]
async fn content_length_with_chunks_hides_no_request() {
    let edge = Edge::start().await;
    let chunked = format!("{:x}\r\n{HIDDEN}\r\n0\r\n\r\n", HIDDEN.len());
    for headers in [
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n",
    ] {
        attack(&edge, &post(headers, &chunked)).await;
        let all = edge.control_plane.all();
        for received in all.iter().filter(|one| one.target == "/api/x") {
            let both = received.headers.contains_key("content-length")
                && received.headers.contains_key("transfer-encoding");
            assert!(!both, "the upstream must get one length: {:?}", received.headers);
            assert_eq!(received.body, HIDDEN, "the body must be the chunked one");
        }
    }
}

#[tokio::test]
async fn rejects_ambiguous_lengths_and_transfer_codings() {
    let edge = Edge::start().await;
    for headers in [
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: +5\r\n",
        "Content-Length: 5, 6\r\n",
        "Content-Length: -1\r\n",
        "Content-Length: 0x5\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding : chunked\r\n",
        "X: a\r\n folded\r\nTransfer-Encoding:\x0bchunked\r\n",
    ] {
        let response = attack(&edge, &post(headers, &format!("0\r\n\r\n{HIDDEN}"))).await;
        assert!(response.starts_with("HTTP/1.1 400"), "{headers:?}: {response}");
    }
}

#[tokio::test]
async fn bytes_after_a_chunked_body_do_not_poison_the_next_request() {
    let edge = Edge::start().await;
    attack(&edge, &post("Transfer-Encoding: chunked\r\n", &format!("0\r\n\r\n{HIDDEN}"))).await;
    attack(&edge, &post("Content-Length: 0\r\n", HIDDEN)).await;
    attack(&edge, &post("Transfer-Encoding: chunked\r\n", &format!("5;ext=\"\r\n{HIDDEN}\"\r\n"))).await;
    attack(&edge, &post("Transfer-Encoding: chunked\r\n", "ffffffffffffffff1\r\nx\r\n0\r\n\r\n")).await;
}

#[tokio::test]
async fn header_values_cannot_be_split() {
    let edge = Edge::start().await;
    for header in ["X-A: a\rX-Edge-Token: forged\r\n", "X-A: a\0b\r\n", "X A: b\r\n", ": b\r\n", "X-A\r\n"] {
        let response = attack(&edge, &post(header, "")).await;
        assert!(response.starts_with("HTTP/1.1 400"), "{header:?}: {response}");
    }
    for target in ["/api/x\tHTTP/1.1", "/api/x y", "api/x", "/api/\u{1}"] {
        let request = format!("GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        let response = attack(&edge, &request).await;
        assert!(response.starts_with("HTTP/1.1 400"), "{target:?}: {response}");
    }
}
