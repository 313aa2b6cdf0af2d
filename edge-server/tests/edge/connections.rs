//! Connection limits: slow, oversized and idle connections are closed, active ones are not.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::harness::Edge;

pub(crate) const HEAD: &str = "GET / HTTP/1.1\r\nHost: quiet-otter.localhost\r\n";

/// Starts an edge with one page and these connection settings.
pub(crate) async fn edge(set: &[&str]) -> Edge {
    let edge = Edge::with(set).await;
    edge.account("quiet-otter").await.page("index", "<p>x").await;
    edge
}

/// Reads until the edge closes the connection.
pub(crate) async fn rest(stream: &mut TcpStream) -> String {
    let mut all = Vec::new();
    let _or_reset = stream.read_to_end(&mut all).await;
    String::from_utf8_lossy(&all).into_owned()
}

/// Reads one response with the page as its body.
pub(crate) async fn one_page(stream: &mut TcpStream) -> String {
    let mut response = Vec::new();
    while !response.ends_with(b"<p>x") {
        assert!(stream.read_buf(&mut response).await.unwrap() > 0, "{}", String::from_utf8_lossy(&response));
    }
    String::from_utf8(response).unwrap()
}

#[tokio::test]
async fn closes_silent_connections_and_slow_request_heads() {
    let edge = edge(&["connections.header_timeout=200ms", "connections.idle_timeout=200ms"]).await;
    let started = Instant::now();
    let mut silent = edge.visitor.connect().await;
    assert_eq!(rest(&mut silent).await, "");
    for beginning in ["GET / HT", HEAD, "PRI * HTTP/2.0\r\n\r\n"] {
        let mut slow = edge.visitor.connect().await;
        slow.write_all(beginning.as_bytes()).await.unwrap();
        let dribble = async {
            loop {
                if slow.write_all(b"x").await.is_err() {
                    return;
                }
                crate::harness::short_pause().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), dribble)
            .await
            .expect("the edge kept the connection open");
    }
    assert!(started.elapsed() < Duration::from_secs(20));
}

#[tokio::test]
async fn closes_idle_connections_but_not_active_ones() {
    let edge = edge(&["connections.idle_timeout=2s"]).await;
    let mut idle = edge.visitor.connect().await;
    idle.write_all(format!("{HEAD}\r\n").as_bytes()).await.unwrap();
    one_page(&mut idle).await;
    let mut used = edge.visitor.connect().await;
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(6) {
        used.write_all(format!("{HEAD}\r\n").as_bytes()).await.unwrap();
        one_page(&mut used).await;
        crate::harness::short_pause().await;
    }
    assert_eq!(rest(&mut idle).await, "");
}

const LARGE_BYTES: usize = 3 << 20;
/// The last bytes of the large page.
const END: &str = "<p>the end";
const LARGE: &str = "GET /large HTTP/1.1\r\nHost: quiet-otter.localhost\r\nConnection: keep-alive\r\n\r\n";

/// Starts an edge with a large page in its cache, one connection slot and a short idle timeout, with or without the
/// fast path.
async fn edge_for_one_connection(has_fast_path: bool) -> Edge {
    let limits = [&*format!("connections.fast_path={has_fast_path}"), "connections.idle_timeout=300ms"];
    let edge = Edge::with(&[limits[0], limits[1], "connections.max=1"]).await;
    let html = format!("{}{END}", "<p>slow".repeat(LARGE_BYTES / 7));
    edge.account("quiet-otter").await.page("large", &html).await;
    let once = LARGE.replace("keep-alive", "close");
    let is_hit = async || edge.visitor.raw(once.as_bytes()).await.contains("x-cache: hit");
    sandbox::test::until(is_hit).await;
    edge
}

/// Requests the large page over a connection with a small receive buffer.
async fn slow_reader(edge: &Edge) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(16 * 1024).unwrap();
    let mut stream = socket.connect(edge.visitor.address()).await.unwrap();
    stream.write_all(LARGE.as_bytes()).await.unwrap();
    stream
}

#[tokio::test]
async fn a_slow_reader_receives_the_whole_large_page() {
    for has_fast_path in [true, false] {
        let edge = edge_for_one_connection(has_fast_path).await;
        let mut stream = slow_reader(&edge).await;
        let (started, mut all) = (Instant::now(), Vec::new());
        while !all.ends_with(END.as_bytes()) {
            let mut piece = vec![0; 32 * 1024];
            let read = stream.read(&mut piece).await.unwrap();
            assert!(read > 0, "cut off after {} bytes in {:?}", all.len(), started.elapsed());
            all.extend_from_slice(&piece[..read]);
            crate::harness::short_pause().await;
        }
        assert!(started.elapsed() > Duration::from_millis(700), "the client read too fast for this test");
    }
}

#[tokio::test]
async fn closes_a_connection_whose_client_stops_reading() {
    for has_fast_path in [true, false] {
        let edge = edge_for_one_connection(has_fast_path).await;
        let mut stream = slow_reader(&edge).await;
        stream.readable().await.unwrap();
        // The only connection slot is taken, so this request waits until the edge closes the first connection.
        let request = LARGE.replace("keep-alive", "close");
        let next = edge.visitor.raw(request.as_bytes());
        let next =
            tokio::time::timeout(Duration::from_secs(60), next).await.expect("the connection is still open");
        assert!(next.starts_with("HTTP/1.1 200"), "{next}");
        assert!(rest(&mut stream).await.len() < LARGE_BYTES / 2);
    }
}

#[tokio::test]
async fn closes_an_http2_connection_whose_flow_control_window_stays_closed() {
    let edge = Edge::with(&["connections.idle_timeout=300ms", "connections.max=1"]).await;
    let account = edge.account("quiet-otter").await;
    let large = vec![b'x'; LARGE_BYTES];
    account.serve_files(&[("large.bin", "application/octet-stream", &large)]).await;
    let io = TokioIo::new(edge.visitor.connect().await);
    let mut builder = http2::Builder::new(TokioExecutor::new());
    let (mut send, connection) = builder.initial_stream_window_size(1_000).handshake(io).await.unwrap();
    let ended = tokio::spawn(connection);
    let request = Request::get("http://quiet-otter.localhost/large.bin").body(Empty::<Bytes>::new()).unwrap();
    let unread = send.send_request(request).await.unwrap();
    assert_eq!(unread.status(), StatusCode::OK);
    let cut =
        tokio::time::timeout(Duration::from_secs(60), ended).await.expect("the connection is still open");
    let _or_error = cut.unwrap();
    let got = unread.into_body().collect().await;
    assert!(got.is_err(), "the body must end early");
}

#[tokio::test]
async fn closes_a_connection_with_a_slow_request_body() {
    let edge = edge(&["connections.body_timeout=200ms"]).await;
    for target in
        ["POST /api/x HTTP/1.1\r\nHost: localhost", "POST / HTTP/1.1\r\nHost: quiet-otter.localhost"]
    {
        let mut slow = edge.visitor.connect().await;
        slow.write_all(format!("{target}\r\nContent-Length: 100000\r\n\r\n").as_bytes()).await.unwrap();
        let (mut reading, mut writing) = slow.split();
        let dribble = async {
            while writing.write_all(b"x").await.is_ok() {
                crate::harness::short_pause().await;
            }
        };
        let mut response = Vec::new();
        let ended = async {
            tokio::select! {
                () = dribble => {}
                _end = reading.read_to_end(&mut response) => {}
            }
        };
        tokio::time::timeout(Duration::from_secs(20), ended).await.expect(target);
    }
    assert!(edge.control_plane.all().is_empty(), "an incomplete request is not forwarded");
}

#[tokio::test]
async fn request_heads_are_limited_to_sixteen_kibibytes() {
    let edge = edge(&[]).await;
    for (cookie_bytes, status) in [(15_000, "HTTP/1.1 200"), (17_000, "HTTP/1.1 431")] {
        let cookie = "c".repeat(cookie_bytes);
        let request = format!("{HEAD}Connection: close\r\nCookie: {cookie}\r\n\r\n");
        let response = edge.visitor.raw(request.as_bytes()).await;
        assert!(response.starts_with(status), "{cookie_bytes}: {response}");
    }
    let many: String = (0..101).map(|n| format!("X-{n}: 1\r\n")).collect();
    let response = edge.visitor.raw(format!("{HEAD}{many}\r\n").as_bytes()).await;
    assert!(response.starts_with("HTTP/1.1 431"), "{response}");
    let large = [("cookie", &*"c".repeat(17_000))];
    let response = edge.visitor.http2().await.get("quiet-otter.localhost", "/", &large).await;
    assert_eq!(response.status, StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let edge = edge(&[]).await;
    let mut stream = edge.visitor.connect().await;
    let second = "GET /nothing HTTP/1.1\r\nHost: quiet-otter.localhost\r\n\r\n";
    let third = "HEAD / HTTP/1.1\r\nHost: quiet-otter.localhost\r\n\r\n";
    let last = format!("{HEAD}Connection: close\r\n\r\n");
    stream.write_all(format!("{HEAD}\r\n{second}{third}{last}").as_bytes()).await.unwrap();
    let responses = rest(&mut stream).await;
    let lines: Vec<&str> = responses.split("HTTP/1.1 ").skip(1).map(|response| &response[..3]).collect();
    assert_eq!(lines, ["200", "404", "200", "200"], "{responses}");
    assert_eq!(responses.matches("<p>x").count(), 2, "a HEAD response has no body: {responses}");
}

#[tokio::test]
async fn pages_are_served_over_http2_without_an_upgrade() {
    let edge = edge(&[]).await;
    // A subscription discards what was cached before it.
    edge.wait_until_subscribed().await;
    let http2 = edge.visitor.http2().await;
    for _miss_and_hit in 0..2 {
        // An HTTP/2 request names its host in `:authority`.
        let response = http2.get("quiet-otter.localhost", "/", &[]).await;
        assert_eq!((response.status, response.text()), (StatusCode::OK, "<p>x"));
        assert_eq!(response.header("content-length"), "4");
    }
    let all = futures::future::join_all((0..100).map(|_| http2.get("quiet-otter.localhost", "/", &[]))).await;
    assert!(all.iter().all(|response| response.text() == "<p>x" && response.header("x-cache") == "hit"));
}

#[tokio::test]
async fn an_http2_head_response_has_a_content_length_and_no_body() {
    let edge = edge(&[]).await;
    let http2 = edge.visitor.http2().await;
    let host = "quiet-otter.localhost";
    for (path, length) in [("/", "4"), ("/", "4"), ("/nothing", "34")] {
        // A body in response to HEAD is a protocol error for an HTTP/2 client.
        let response = http2.send(http::Method::HEAD, host, path, &[]).await;
        assert_eq!((response.text(), response.header("content-length")), ("", length), "{path}");
    }
    let response = http2.get(host, "/", &[]).await;
    assert_eq!(response.text(), "<p>x");
}

#[tokio::test]
async fn closes_an_idle_http2_connection() {
    let edge = edge(&["connections.idle_timeout=200ms"]).await;
    let mut stream = edge.visitor.connect().await;
    // The connection preface and an empty SETTINGS frame.
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
    let mut all = Vec::new();
    let ended = tokio::time::timeout(Duration::from_secs(30), stream.read_to_end(&mut all)).await;
    assert!(ended.is_ok(), "the connection is still open");
}

#[tokio::test]
async fn shutdown_answers_running_requests_and_accepts_no_connections() {
    let edge = edge(&[]).await;
    let mut idle = edge.visitor.connect().await;
    idle.write_all(format!("{HEAD}\r\n").as_bytes()).await.unwrap();
    one_page(&mut idle).await;
    let gate = edge.control_plane.hold_responses();
    let running = tokio::spawn({
        let visitor = edge.visitor.clone();
        async move { visitor.get("localhost", "/api/slow").await }
    });
    sandbox::test::until(async || !edge.control_plane.all().is_empty()).await;
    edge.stop();
    assert_eq!(rest(&mut idle).await, "", "shutdown closes idle connections");
    sandbox::test::until(async || TcpStream::connect(edge.visitor.address()).await.is_err()).await;
    drop(gate);
    assert_eq!(running.await.unwrap().text(), "from the inside");
}
