//! Differential tests of the fast path and hyper: the same bytes, valid or not, must get the same responses.
//!
//! One edge has the fast path, the other passes everything to hyper. The tests compare all responses on a connection:
//! statuses, bodies, and headers except the date and generated ids. Each stream ends with a `Connection: close` request,
//! so a difference in keep-alive or in the position of the next request shows too.

use std::time::Duration;

use futures::StreamExt;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::form_differential;
use crate::harness::Edge;
use crate::request_fuzz::{self, Stream};

/// Short timeouts, because a stream that ends in an incomplete request waits for them.
const LIMITS: [&str; 2] = ["connections.header_timeout=2s", "connections.idle_timeout=2s"];
/// The number of streams compared concurrently.
const CONCURRENCY: usize = 96;
/// hyper's responses sometimes depend on when the bytes arrive, for example whether the rest of a body is there when the
/// response is sent. One equal attempt of this many is enough.
const TRIES: usize = 6;

pub(crate) struct ParserDifferential {
    pub(crate) fast: Edge,
    pub(crate) hyper: Edge,
}

impl ParserDifferential {
    /// Starts two edges that differ only in the fast path, with the same pages and forms in their caches.
    pub(crate) async fn start() -> Self {
        let fast = Edge::with(&LIMITS).await;
        let without = [LIMITS[0], LIMITS[1], "connections.fast_path=false"];
        let hyper = Edge::with(&without).await;
        for edge in [&fast, &hyper] {
            let site = edge.account("quiet-otter").await;
            site.page("index", "<p>the first page").await;
            site.page("long/one", &"<p>much the same in every line\n".repeat(2_000)).await;
            let script = "let much = 'the same in every line';\n".repeat(2_000);
            let files = [
                ("app.js", "text/javascript", script.as_bytes()),
                ("a.png", "image/png", b"\x89PNG\r\n\x1a\n"),
            ];
            site.serve_files(&files).await;
            for path in ["/", "/long/one", "/app.js", "/a.png"] {
                let gzip = [("accept-encoding", "gzip")];
                let send = || edge.visitor.send(http::Method::GET, &site.host, path, &gzip, "");
                sandbox::test::until(async || {
                    let response = send().await;
                    let is_small = matches!(path, "/" | "/a.png");
                    let is_ready = is_small || response.header("content-encoding") == "gzip";
                    is_ready && matches!(response.header("x-cache"), "hit" | "")
                })
                .await;
                // The uncompressed body of a file is cached too.
                edge.visitor.get(&site.host, path).await;
            }
            edge.visitor.get(&site.host, "/nothing").await;
            form_differential::prepare(edge, &site).await;
            // Without Postgres every cache miss fails the same way, so no response depends on its load.
            edge.postgres.cut();
        }
        Self { fast, hyper }
    }

    /// Fails if the two edges answer a stream differently.
    async fn compare(&self, stream: &Stream) {
        let mut tried = Vec::new();
        for _ in 0..TRIES {
            let (fast, hyper) = tokio::join!(responses(&self.fast, stream), responses(&self.hyper, stream));
            if fast == hyper {
                return;
            }
            tried.push((fast, hyper));
        }
        let (fast, hyper) = &tried[0];
        assert_eq!(fast, hyper, "{stream:?}: left: with the fast path, right: without");
    }

    async fn compare_all(&self, streams: impl IntoIterator<Item = Stream>) {
        let all = streams.into_iter().map(|stream| async move { self.compare(&stream).await });
        futures::stream::iter(all).buffer_unordered(CONCURRENCY).collect::<Vec<()>>().await;
    }

    /// Compares streams that are each written at once, in two parts, and byte by byte.
    pub(crate) async fn compare_each(&self, written: &[&str]) {
        let split = |bytes: &Vec<u8>| {
            let middle = bytes.len() / 2;
            [vec![], vec![middle], (1..bytes.len()).collect()]
                .map(|cuts| Stream { bytes: bytes.clone(), cuts })
        };
        let all: Vec<_> =
            written.iter().map(|one| request_fuzz::with_closing_request(one.as_bytes())).collect();
        self.compare_all(all.iter().flat_map(split)).await;
    }
}

/// The normalized responses of an edge to a stream.
async fn responses(edge: &Edge, stream: &Stream) -> Vec<String> {
    let connection = edge.visitor.connect().await;
    connection.set_nodelay(true).unwrap();
    responses_over(connection, edge, stream).await
}

/// The normalized responses of an edge to a stream over a new connection.
pub(crate) async fn responses_over(
    connection: impl AsyncRead + AsyncWrite,
    edge: &Edge,
    stream: &Stream,
) -> Vec<String> {
    let (mut reading, mut writing) = tokio::io::split(connection);
    let mut all = Vec::new();
    let write = async {
        for piece in stream.pieces() {
            // The edge may have closed the connection.
            if writing.write_all(piece).await.is_err() {
                break;
            }
            let _or_closed = writing.flush().await;
            tokio::task::yield_now().await;
        }
    };
    let read = tokio::time::timeout(Duration::from_secs(60), reading.read_to_end(&mut all));
    let ((), read) = tokio::join!(write, read);
    let _or_reset = read.expect("the edge must close the connection");
    let all = String::from_utf8_lossy(&all).replace(&format!(":{}", edge.port()), ":PORT");
    all.split("HTTP/1.").map(normalized).collect()
}

/// A response with sorted headers and without values that differ between requests.
fn normalized(response: &str) -> String {
    let (head, body) = response.split_once("\r\n\r\n").unwrap_or((response, ""));
    let mut lines: Vec<&str> = head.split("\r\n").collect();
    let is_generated = |id: &&str| id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    let generated_id = lines.iter().find_map(|line| line.strip_prefix("x-request-id: ").filter(is_generated));
    for line in lines.iter_mut().filter(|line| line.starts_with("date: ")) {
        assert!(
            line.ends_with(" GMT") && line.len() == "date: Sun, 06 Nov 1994 08:49:37 GMT".len(),
            "{line}"
        );
        *line = "date";
    }
    lines[1..].sort_unstable();
    let body = form_differential::without_token(body);
    let response = format!("{}\n\n{body}", lines.join("\n"));
    generated_id.map_or(response.clone(), |id| response.replace(id, "an id"))
}

const HOST: &str = "Host: quiet-otter.localhost\r\n";
const GET: &str = "GET / HTTP/1.1\r\nHost: quiet-otter.localhost\r\n\r\n";
/// A request that an attacker tries to smuggle into another visitor's connection.
const HIDDEN: &str = "GET /long/one HTTP/1.1\r\nHost: quiet-otter.localhost\r\n\r\n";

fn get(lines: &str) -> String {
    format!("GET / HTTP/1.1\r\n{HOST}{lines}\r\n")
}

#[tokio::test]
async fn the_fast_path_answers_plain_requests_as_hyper_does() {
    let both = ParserDifferential::start().await;
    let close = request_fuzz::with_closing_request(GET.as_bytes());
    let close = &close[..];
    let (fast, hyper) = (both.fast.visitor.raw(close).await, both.hyper.visitor.raw(close).await);
    assert!(is_from_fast_path(&fast) && !is_from_fast_path(&hyper), "{fast}\n{hyper}");
    let etag = both.fast.visitor.get("quiet-otter.localhost", "/").await.header("etag").to_owned();
    both.compare_each(&[
        GET,
        &GET.replace("GET", "HEAD"),
        &[GET, HIDDEN, GET].concat(),
        &GET.repeat(40),
        &HIDDEN.repeat(20),
        &[GET, &get("If-None-Match: *\r\n"), &HIDDEN.replace("GET", "HEAD"), GET].concat(),
        &get(&format!("If-None-Match: {etag}\r\n")),
        &get(&format!("If-None-Match: \"x\", W/{etag}\r\n")),
        &get("Accept-Encoding: gzip\r\n").replace("GET /", "GET /long/one"),
        &get("Accept-Encoding: gzip, br;q=0.5\r\nX-Request-Id: a-request-of-mine\r\n")
            .replace("GET /", "GET /long/one"),
        &get("X-Request-Id: <no word>\r\n"),
        &get("X-Request-Id: short\r\n"),
        &GET.replace("GET /", "GET /?a=b&c=%20d"),
        &GET.replace("GET /", "GET /nothing"),
        &GET.replace("GET /", "GET /long/one/"),
        &GET.replace("GET /", "GET /index"),
        &GET.replace("quiet-otter", "absent"),
        &GET.replace("quiet-otter.", ""),
    ])
    .await;
}

#[tokio::test]
async fn the_fast_path_answers_requests_for_files_as_hyper_does() {
    let both = ParserDifferential::start().await;
    let script = GET.replace("GET /", "GET /app.js");
    let image = GET.replace("GET /", "GET /a.png");
    let with = |request: &str, line: &str| request.replace("\r\n\r\n", &format!("\r\n{line}\r\n\r\n"));
    let gzip = "Accept-Encoding: gzip, deflate, br, zstd";
    for request in [&script, &image, &with(&script, gzip), &with(&image, gzip)] {
        let closing = request_fuzz::with_closing_request(request.as_bytes());
        let responses = [both.fast.visitor.raw(&closing).await, both.hyper.visitor.raw(&closing).await];
        assert!(responses.iter().all(|response| response.starts_with("HTTP/1.1 200 OK")), "{responses:?}");
        assert!(is_from_fast_path(&responses[0]) && !is_from_fast_path(&responses[1]), "{responses:?}");
    }
    let host = "quiet-otter.localhost";
    let plain = both.fast.visitor.get(host, "/app.js").await.header("etag").to_owned();
    let accept = [("accept-encoding", "gzip")];
    let encoded = both.fast.visitor.send(http::Method::GET, host, "/app.js", &accept, "").await;
    let encoded = encoded.header("etag").to_owned();
    assert_ne!(plain, encoded);
    let known = |etag: &str| format!("If-None-Match: {etag}");
    both.compare_each(&[
        &script,
        &image,
        &with(&script, gzip),
        &script.replace("GET", "HEAD"),
        &with(&script, gzip).replace("GET", "HEAD"),
        &with(&script, &known(&plain)),
        &with(&script, &known(&encoded)),
        &with(&with(&script, gzip), &known(&encoded)),
        &with(&with(&script, gzip), &known(&plain)),
        &with(&image, &known("*")),
        &with(&script, "Range: bytes=4-7"),
        &with(&script, "Range: bytes=4-7").replace("GET", "HEAD"),
        &script.replace("/app.js", "/app.js?version=2"),
        &script.replace("/app.js", "/app.js/"),
        &[GET, &script, &image, &with(&script, gzip), GET].concat(),
        &with(&script, gzip).repeat(20),
    ])
    .await;
}

/// Whether the fast path sent this response: it writes the headers in its own order.
pub(crate) fn is_from_fast_path(response: &str) -> bool {
    let head = response.split("\r\n\r\n").next().unwrap();
    let names: Vec<_> = head.split("\r\n").map(|line| line.split(": ").next().unwrap()).collect();
    names.ends_with(&["content-length", "x-request-id", "date"])
}

#[tokio::test]
async fn the_fast_path_waits_for_an_expired_page_to_reload() {
    let edge = Edge::with(&["cache.max_age=50ms"]).await;
    let site = edge.account("quiet-otter").await;
    let page = site.page("index", "<p>old").await;
    let mut connection = edge.visitor.connect().await;
    let mut fetch = async || {
        connection.write_all(GET.as_bytes()).await.unwrap();
        let mut response = Vec::new();
        while !response.windows(3).any(|three| three == b"<p>")
            || !matches!(&response[response.len() - 3..], b"old" | b"new")
        {
            assert!(connection.read_buf(&mut response).await.unwrap() > 0);
        }
        String::from_utf8(response).unwrap()
    };
    let first = fetch().await;
    assert!(
        is_from_fast_path(&first) && first.contains("x-cache: miss") && first.ends_with("<p>old"),
        "{first}"
    );
    site.edit(page, "<p>new").await;
    let mut later = fetch().await;
    while !later.ends_with("<p>new") {
        assert!(is_from_fast_path(&later), "{later}");
        later = fetch().await;
    }
    assert!(is_from_fast_path(&later) && later.contains("x-cache: miss"), "{later}");
    edge.postgres.cut();
    while !later.contains("x-cache: stale") {
        later = fetch().await;
        assert!(is_from_fast_path(&later), "{later}");
    }
}

#[tokio::test]
async fn body_headers_on_a_cached_request_hide_no_second_request() {
    let lengths = ["Content-Length: 0", "Content-Length: 5", "Content-Length: +5", "Content-Length: 5, 6"];
    let codings = [
        "Transfer-Encoding: chunked",
        "Transfer-Encoding : chunked",
        "Transfer-Encoding:\u{b}chunked",
        "TRANSFER-ENCODING: chunked",
        "Transfer-Encoding: xchunked",
        "Transfer-Encoding: chunked, identity",
        "Transfer_Encoding: chunked",
        "X: y\r\n Transfer-Encoding: chunked",
        "X: y\nTransfer-Encoding: chunked",
        "X: y\rTransfer-Encoding: chunked",
    ];
    let mut all = Vec::new();
    for behind in
        [format!("5\r\nabcde\r\n0\r\n\r\n{HIDDEN}"), format!("0\r\n\r\n{HIDDEN}"), HIDDEN.to_owned()]
    {
        for one in lengths.iter().chain(&codings) {
            all.push(format!("{GET}{}{behind}", get(&format!("{one}\r\n"))));
        }
        for length in lengths {
            for coding in codings {
                all.push(format!("{}{behind}", get(&format!("{length}\r\n{coding}\r\n"))));
                all.push(format!("{}{behind}", get(&format!("{coding}\r\n{length}\r\n"))));
            }
        }
    }
    let both = ParserDifferential::start().await;
    let whole = all
        .iter()
        .map(|one| Stream { bytes: request_fuzz::with_closing_request(one.as_bytes()), cuts: vec![] });
    both.compare_all(whole).await;
}

#[tokio::test]
async fn line_endings_and_folded_headers_match_hypers() {
    let both = ParserDifferential::start().await;
    both.compare_each(&[
        &GET.replace("\r\n", "\n"),
        &GET.replace("\r\n\r\n", "\n\n"),
        &GET.replace("\r\n\r\n", "\r\n\n"),
        &GET.replace("\r\n\r\n", "\n\r\n"),
        &GET.replace("\r\n", "\r"),
        &GET.replace("\r\n", "\r\r\n"),
        &GET.replace("\r\n", "\n\r"),
        &format!("\r\n{GET}\r\n\r\n{GET}"),
        &format!("\n{GET}\n{GET}"),
        &get("X: a\r\n b\r\n"),
        &get("X: a\r\n\tb\r\n"),
        &get(" X: a\r\n"),
        &get("X: a\0b\r\n"),
        &get("X\0: a\r\n"),
        &get("X: a\rContent-Length: 5\r\n"),
        &get("X:\ta\t\r\n"),
        &get("X: \u{e4}\r\n"),
        &get("X\r\n"),
        &get(": x\r\n"),
        &get("X : y\r\n"),
    ])
    .await;
}

#[tokio::test]
async fn host_headers_and_targets_match_hypers() {
    let both = ParserDifferential::start().await;
    let to = |host: &str| format!("GET / HTTP/1.1\r\n{host}\r\n");
    both.compare_each(&[
        &to(""),
        &to("Host:\r\n"),
        &to(&HOST.repeat(2)),
        &to(&format!("{HOST}Host: absent.localhost\r\n")),
        &to(&format!("Host: absent.localhost\r\n{HOST}")),
        &to(&HOST.to_uppercase()),
        &to("hOsT:quiet-otter.localhost:1234  \r\n"),
        &to("Host: quiet-otter.localhost.\r\n"),
        &to("Host: quiet-otter.localhost, absent.localhost\r\n"),
        &to("Host: quiet-otter.localhost\tx\r\n"),
        &to("Host: quiet-otter.localhost/x\r\n"),
        &to("Host: x@quiet-otter.localhost\r\n"),
        &to("Host: quiet\u{2010}otter.localhost\r\n"),
        &GET.replace("GET /", "GET http://quiet-otter.localhost/"),
        &GET.replace("GET /", "GET http://absent.localhost/"),
        &GET.replace("GET /", "GET //absent.localhost/"),
        &GET.replace("GET /", "GET *"),
        &GET.replace("GET /", "GET /#x"),
        &GET.replace("GET /", "GET /%69ndex"),
        &GET.replace("GET /", "GET /?\"<>"),
        &GET.replace("GET /", "GET /\u{e4}"),
        &GET.replace("GET /", "GET /\u{1}"),
        &GET.replace("GET /", "GET /\\"),
        &GET.replace("GET /", "GET /long/./one"),
        &GET.replace("GET /", "OPTIONS *"),
    ])
    .await;
}

#[tokio::test]
async fn connection_headers_and_protocol_versions_match_hypers() {
    let both = ParserDifferential::start().await;
    let connection = |values: &str| format!("{GET}{}{GET}", get(&format!("Connection: {values}\r\n")));
    both.compare_each(&[
        &connection("close"),
        &connection("keep-alive"),
        &connection("KEEP-ALIVE"),
        &connection("keep-alive, close"),
        &connection("keep-alive\r\nConnection: close"),
        &connection("close\r\nConnection: keep-alive"),
        &connection("host, accept-encoding"),
        &connection(", ,keep-alive"),
        &connection("\"keep-alive\""),
        &connection(""),
        &connection("upgrade\r\nUpgrade: websocket"),
        &connection("Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA"),
        &connection("keep-alive\r\nUpgrade: h2c"),
        &connection("keep-alive\r\nExpect: 100-continue"),
        &connection("keep-alive\r\nTE: trailers"),
        &connection("keep-alive\r\nRange: bytes=0-1"),
        &GET.replace("1.1", "1.0"),
        &get("Connection: keep-alive\r\n").replace("1.1", "1.0"),
        &GET.replace("1.1", "1.2"),
        &GET.replace("1.1", "2.0"),
        &GET.replace(" HTTP/1.1", ""),
        &GET.replace("HTTP/1.1", "HTTP/1.1 x"),
        &GET.replace("HTTP/1.1", "http/1.1"),
        &GET.replace("GET", "get"),
        &GET.replace("GET", "GET "),
        &GET.replace("GET", "POST"),
        &GET.replace("GET", "CONNECT"),
        "PRI * HTTP/1.1\r\n\r\n",
        "PRI / HTTP/1.1\r\nHost: quiet-otter.localhost\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nGET / HTTP/1.1\r\n\r\n",
        &format!("{GET}PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        "\u{16}\u{3}\u{1}",
    ])
    .await;
}

#[tokio::test]
async fn heads_of_any_size_match_hypers() {
    let both = ParserDifferential::start().await;
    let cookie = |bytes: usize| get(&format!("Cookie: {}\r\n", "c".repeat(bytes)));
    let many = |count: usize| get(&(0..count).map(|n| format!("X-{n}: 1\r\n")).collect::<String>());
    let sizes = [0, 1_000, 8_000, 8_100, 8_192, 8_300, 12_000, 16_200, 16_384, 17_000, 40_000];
    let mut all: Vec<String> = sizes.map(cookie).to_vec();
    all.extend([98, 99, 100, 101, 200].map(many));
    all.extend(
        [100, 7_000, 16_000, 20_000].map(|n| GET.replace("GET /", &format!("GET /?{}", "q".repeat(n)))),
    );
    all.push([GET.to_owned(), cookie(15_000), GET.to_owned(), cookie(8_000)].concat());
    let whole = |one: &String| {
        let bytes = request_fuzz::with_closing_request(one.as_bytes());
        [vec![], vec![100], vec![bytes.len() - 3]].map(|cuts| Stream { bytes: bytes.clone(), cuts })
    };
    both.compare_all(all.iter().flat_map(whole)).await;
}

#[tokio::test]
async fn random_streams_match_hypers() {
    let both = ParserDifferential::start().await;
    both.compare_all(request_fuzz::random_streams(1_200)).await;
}
