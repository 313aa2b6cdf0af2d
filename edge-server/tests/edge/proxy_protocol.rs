//! The PROXY protocol: required where it is configured, and read from trusted proxies alone.

use futures::StreamExt;
use sandbox::test::with_timeout;
use service::config::{Listen, ProxyProtocol};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::{Edge, over_https};
use crate::tls_client::{SET, get, hello};

/// The alert of a hello for an unknown name, which was read.
const UNRECOGNIZED_NAME: &[u8] = &[21, 3, 3, 0, 2, 2, 112];
const LINE: &str = "PROXY TCP4 203.0.113.7 10.0.0.1 4711 443\r\n";

async fn edge(trusted: &str) -> Edge {
    edge_with(&[trusted]).await
}

async fn edge_with(set: &[&str]) -> Edge {
    let required = ProxyProtocol::Required;
    let listen = Listen { proxy_protocol: required, https_proxy_protocol: required, ..over_https() };
    Edge::listening(listen, &[&SET[..], set].concat()).await
}

#[tokio::test]
async fn one_client_behind_a_proxy_can_not_take_every_connection() {
    let edge = edge_with(&["http.trusted_proxies=[\"127.0.0.0/8\"]", "connections.max_per_address=2"]).await;
    let mut visitor = TcpStream::connect(edge.visitor.address()).await.unwrap();
    visitor.write_all(LINE.replace("113.7", "113.8").as_bytes()).await.unwrap();
    get(&mut visitor, "localhost", "/").await;
    let mut attacking = Vec::new();
    for number in 0..12 {
        // Some are silent in the middle of a hello.
        let to = if number % 2 == 0 { edge.visitor.address() } else { edge.https() };
        let mut stream = TcpStream::connect(to).await.unwrap();
        stream.write_all(LINE.as_bytes()).await.unwrap();
        stream.write_all(&[22, 3, 1][..3 * (number % 2)]).await.unwrap();
        attacking.push(stream);
    }
    let closed = futures::stream::iter(&mut attacking)
        .map(async |stream| with_timeout(stream.read_u8()).await.unwrap_err())
        .buffer_unordered(12);
    assert_eq!(closed.take(10).count().await, 10, "two of them are left");
    get(&mut visitor, "localhost", "/").await;
}

#[tokio::test]
async fn the_header_of_a_trusted_proxy_names_the_client() {
    let edge = edge("http.trusted_proxies=[\"127.0.0.0/8\"]").await;
    let version_2 =
        [&b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c"[..], &[203, 0, 113, 8, 10, 0, 0, 1, 0, 1, 0, 2]].concat();
    for (header, client) in [(LINE.as_bytes(), "203.0.113.7"), (&version_2, "203.0.113.8")] {
        let mut stream = TcpStream::connect(edge.visitor.address()).await.unwrap();
        for byte in header {
            stream.write_all(&[*byte]).await.unwrap();
        }
        get(&mut stream, "localhost", "/api/account").await;
        assert_eq!(edge.control_plane.last().header(contract::edge::CLIENT_IP), client);
    }
}

#[tokio::test]
async fn a_connection_without_the_header_or_from_another_peer_is_closed() {
    let trusting = edge("http.trusted_proxies=[\"127.0.0.0/8\"]").await;
    let request = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    assert_eq!(with_timeout(trusting.visitor.raw(request.as_bytes())).await, "");
    let distrusting = edge("http.trusted_proxies=[\"10.0.0.0/8\"]").await;
    assert_eq!(with_timeout(distrusting.visitor.raw(format!("{LINE}{request}").as_bytes())).await, "");
    for edge in [&trusting, &distrusting] {
        let mut stream = TcpStream::connect(edge.https()).await.unwrap();
        let _or_reset = stream.write_all(&[22, 3, 1, 0, 200, 1, 0, 0, 196, 3, 3, 0, 0]).await;
        let mut rest = Vec::new();
        let _or_reset = with_timeout(stream.read_to_end(&mut rest)).await;
        assert!(rest.is_empty(), "no alert, because no hello is read: {rest:?}");
    }
}

#[tokio::test]
async fn the_header_required_on_one_listener_is_not_expected_on_the_other() {
    let (off, required) = (ProxyProtocol::Off, ProxyProtocol::Required);
    for (proxy_protocol, https_proxy_protocol) in [(required, off), (off, required)] {
        let listen = Listen { proxy_protocol, https_proxy_protocol, ..over_https() };
        let trusted = "http.trusted_proxies=[\"127.0.0.0/8\"]";
        let edge = Edge::listening(listen, &[&SET[..], &[trusted]].concat()).await;
        let (main, https) = (edge.visitor.address(), edge.https());
        let request = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        let hello = hello("unknown.example");
        for (address, bytes, answer) in
            [(main, &request[..], &b"HTTP/1.1 "[..]), (https, &hello, UNRECOGNIZED_NAME)]
        {
            let is_required = (address == main) == (proxy_protocol == required);
            for has_header in [true, false] {
                let header = if has_header { LINE.as_bytes() } else { &[] };
                let mut stream = TcpStream::connect(address).await.unwrap();
                let _or_reset = stream.write_all(&[header, bytes].concat()).await;
                let mut all = Vec::new();
                let _or_reset = with_timeout(stream.read_to_end(&mut all)).await;
                let is_served = all.starts_with(answer);
                let expected = has_header == is_required;
                assert_eq!(is_served && !all.starts_with(b"HTTP/1.1 400"), expected, "{all:?}");
            }
        }
    }
}
