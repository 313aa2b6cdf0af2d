//! Requests over TLS: the same responses as over HTTP, only for hosts that the certificate covers.

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use sandbox::test::until;

use crate::harness::{Edge, over_https};
use crate::parser_differential::{is_from_fast_path, responses_over};
use crate::request_fuzz::{self, Stream};
use crate::tls_client::{SET, SITE, TlsEdge, connect, get, later};

const GET: &str = "GET / HTTP/1.1\r\nHost: quiet-otter.localhost\r\n\r\n";

#[tokio::test]
async fn the_fast_path_behind_tls_answers_as_hyper_does_over_http() {
    let limits = ["connections.header_timeout=2s", "connections.idle_timeout=2s"];
    let fast = TlsEdge::start(&[&limits[..], &["http.sites_domain=localhost"]].concat()).await;
    // A wildcard of one label is no name for clients, so the certificate has the site's own name too.
    fast.insert(
        "*.localhost",
        &["*.localhost", "quiet-otter.localhost", "absent.localhost", "localhost"],
        later(),
    )
    .await;
    until(async || fast.connect("quiet-otter.localhost").await.is_ok()).await;
    let hyper = Edge::with(&[&limits[..], &["connections.fast_path=false"]].concat()).await;
    for edge in [&fast.edge, &hyper] {
        let site = edge.account("quiet-otter").await;
        site.page("index", "<p>the first page").await;
        site.page("long/one", &"<p>much the same in every line\n".repeat(2_000)).await;
        for path in ["/", "/long/one", "/nothing"] {
            until(async || edge.visitor.get(&site.host, path).await.header("x-cache") != "miss").await;
            let gzip = [("accept-encoding", "gzip")];
            let get = || edge.visitor.send(Method::GET, &site.host, path, &gzip, "");
            until(async || path != "/long/one" || get().await.header("content-encoding") == "gzip").await;
        }
    }
    let mut first = fast.connect("quiet-otter.localhost").await.unwrap();
    assert!(is_from_fast_path(&get(&mut first, "quiet-otter.localhost", "/").await));
    for edge in [&fast.edge, &hyper] {
        // Without Postgres every cache miss fails the same way.
        edge.postgres.cut();
    }
    let written = [
        GET.to_owned(),
        GET.replace("GET", "HEAD"),
        GET.repeat(40),
        GET.replace("GET /", "GET /long/one").repeat(20),
        GET.replace("\r\n\r\n", "\r\nAccept-Encoding: gzip\r\n\r\n").replace("GET /", "GET /long/one"),
        GET.replace("\r\n\r\n", "\r\nContent-Length: 3\r\n\r\nabc"),
        GET.replace("GET /", "GET /nothing"),
        GET.replace("quiet-otter", "absent"),
        GET.replace("GET / HTTP/1.1", "nonsense"),
    ];
    let whole = written.iter().map(|one| {
        let bytes = request_fuzz::with_closing_request(one.as_bytes());
        let middle = bytes.len() / 2;
        Stream { bytes, cuts: vec![middle] }
    });
    let random = request_fuzz::random_streams(60).into_iter().map(|stream| (stream, true));
    for (stream, has_other_hosts) in whole.map(|stream| (stream, false)).chain(random) {
        let mut tried = Vec::new();
        let is_equal = 'tries: {
            for _ in 0..6 {
                let over_tls = fast.connect("quiet-otter.localhost").await.unwrap();
                let over_tls = responses_over(over_tls, &fast.edge, &stream).await;
                let plain = responses_over(hyper.visitor.connect().await, &hyper, &stream).await;
                if is_same(&over_tls, &plain, has_other_hosts) {
                    break 'tries true;
                }
                tried.push((over_tls, plain));
            }
            false
        };
        assert!(is_equal, "{stream:?}: {:?}", tried[0]);
    }
}

/// Returns whether each response is the same; for hosts that the certificate does not cover, a 421 in place of the 404 for
/// hosts without a site.
fn is_same(over_tls: &[String], plain: &[String], has_other_hosts: bool) -> bool {
    let is_misdirected =
        |one: &str, other: &str| has_other_hosts && one.starts_with("1 421 ") && other.starts_with("1 404 ");
    over_tls.len() == plain.len()
        && over_tls.iter().zip(plain).all(|(one, other)| one == other || is_misdirected(one, other))
}

#[tokio::test]
async fn only_hosts_that_the_certificate_covers_are_served() {
    let tls = TlsEdge::start(&[]).await;
    tls.insert("shop.example.org", &["shop.example.org", "www.shop.example.org"], later()).await;
    for name in ["quiet-otter", "loud-badger"] {
        tls.edge.account(name).await.page("index", &format!("<p>{name}")).await;
        // The page is cached, so that the fast path could answer.
        let host = format!("{name}.sites.localhost");
        until(async || tls.edge.visitor.get(&host, "/").await.header("x-cache") == "hit").await;
    }
    let is_misdirected = async |name: &str, host: &str| {
        let response = tls.get(name, host, "/").await;
        response.starts_with("HTTP/1.1 421 Misdirected Request\r\n")
    };
    for host in [
        SITE,
        "Quiet-Otter.sites.localhost",
        "quiet-otter.sites.localhost:8443",
        "quiet-otter.sites.localhost.",
    ] {
        assert!(tls.get(SITE, host, "/").await.ends_with("<p>quiet-otter"), "{host}");
    }
    assert!(
        tls.get(SITE, "loud-badger.sites.localhost", "/").await.ends_with("<p>loud-badger"),
        "coalescing"
    );
    assert!(!is_misdirected("shop.example.org", "www.shop.example.org").await);
    for (name, host) in [
        (SITE, "localhost"),
        (SITE, "shop.example.org"),
        (SITE, "a.quiet-otter.sites.localhost"),
        (SITE, "sites.localhost"),
        ("localhost", SITE),
        ("shop.example.org", "example.org"),
        ("shop.example.org", "localhost"),
    ] {
        assert!(is_misdirected(name, host).await, "{host} over a connection to {name}");
    }
    let mut mixed = tls.connect(SITE).await.unwrap();
    assert!(get(&mut mixed, SITE, "/").await.ends_with("<p>quiet-otter"));
    assert!(get(&mut mixed, "localhost", "/").await.contains(" 421 "), "after a response of the fast path");
    assert!(get(&mut mixed, SITE, "/").await.ends_with("<p>quiet-otter"), "the connection stays open");
}

#[tokio::test]
async fn http2_over_tls_serves_pages_and_misdirects_other_hosts() {
    let tls = TlsEdge::start(&[]).await;
    tls.edge.account("quiet-otter").await.page("index", &"<p>long ".repeat(30_000)).await;
    let mut client = tls.authority.client();
    client.alpn_protocols = vec![b"h2".to_vec()];
    let stream = connect(tls.edge.https(), SITE, &client).await.unwrap();
    let (send, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let fetch = async |host: &str| {
        let request = Request::get(format!("https://{host}/")).body(Full::<Bytes>::default()).unwrap();
        let response = send.clone().send_request(request).await.unwrap();
        (response.status(), response.into_body().collect().await.unwrap().to_bytes())
    };
    let (status, body) = fetch(SITE).await;
    assert_eq!((status, body.len()), (StatusCode::OK, 8 * 30_000));
    assert_eq!(fetch("localhost").await.0, StatusCode::MISDIRECTED_REQUEST);
    assert_eq!(fetch("absent.sites.localhost").await.0, StatusCode::NOT_FOUND);
    let all = futures::future::join_all((0..50).map(|_| fetch(SITE))).await;
    assert!(all.iter().all(|(status, body)| *status == StatusCode::OK && body.len() == 8 * 30_000));
}

#[tokio::test]
async fn http_leads_to_https_for_hosts_with_a_certificate() {
    let tls = TlsEdge::start(&["http.base_url=https://localhost:8443"]).await;
    tls.edge.account("quiet-otter").await.page("index", "<p>x").await;
    let send = async |method: Method, host: &str, path: &str| {
        tls.edge.visitor.send(method, host, path, &[], "").await
    };
    for (method, host) in [(Method::GET, SITE), (Method::HEAD, SITE), (Method::GET, "localhost")] {
        for _ in 0..2 {
            let response = send(method.clone(), &format!("{host}:8080"), "/a/b?c=d").await;
            assert_eq!(response.status, StatusCode::PERMANENT_REDIRECT, "{host}");
            assert_eq!(response.header("location"), format!("https://{host}:8443/a/b?c=d"));
        }
    }
    assert!(tls.get(SITE, SITE, "/").await.ends_with("<p>x"), "no redirect over https");
    assert_eq!(
        send(Method::GET, "shop.example.org", "/").await.status,
        StatusCode::NOT_FOUND,
        "no certificate"
    );
}

#[tokio::test]
async fn requests_of_every_method_are_redirected_to_https_with_their_bodies() {
    let tls = TlsEdge::start(&["http.base_url=https://localhost:8443"]).await;
    for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::OPTIONS] {
        // The response arrives although the body, which is larger than the buffers of a connection, is not used.
        let body = "x".repeat(if method == Method::POST { 900_000 } else { 0 });
        let response = tls.edge.visitor.send(method, "localhost", "/api/forms/x/submit?a", &[], body).await;
        assert_eq!(response.status, StatusCode::PERMANENT_REDIRECT);
        assert_eq!(response.header("location"), "https://localhost:8443/api/forms/x/submit?a");
    }
}

#[tokio::test]
async fn a_proxy_that_terminates_tls_gets_no_redirect_loop() {
    let base_url = "http.base_url=https://localhost:8443";
    for (trusted, status) in [("127.0.0.0/8", 200), ("10.0.0.0/8", 308)] {
        let tls = TlsEdge::start(&[base_url, &format!("http.trusted_proxies=[\"{trusted}\"]")]).await;
        tls.edge.account("quiet-otter").await.page("index", "<p>x").await;
        for (proto, expected) in [("https", status), ("HTTPS", status), ("http", 308), ("", 308)] {
            for host in [SITE, "localhost"] {
                let headers = [("x-forwarded-proto", proto)];
                let response = tls.edge.visitor.send(Method::GET, host, "/", &headers, "").await;
                assert_eq!(response.status.as_u16(), expected, "{host} of {trusted}: {proto}");
            }
        }
    }
}

#[tokio::test]
async fn with_a_base_url_of_http_nothing_is_redirected() {
    let edge = Edge::listening(over_https(), &SET).await;
    edge.account("quiet-otter").await.page("index", "<p>x").await;
    assert_eq!(edge.visitor.get(SITE, "/").await.text(), "<p>x");
}
