//! `Strict-Transport-Security` of custom domains: off unless set, only over https, and on every response.

use bytes::Bytes;
use contract::Change;
use http::Request;
use http_body_util::Full;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use sandbox::test::until;
use tokio::io::AsyncWriteExt;

use crate::domains::add;
use crate::parser_differential::is_from_fast_path;
use crate::tls_client::{SITE, TlsEdge, connect, later, response};

const DOMAIN: &str = "www.example.com";
const OTHER: &str = "other.example.com";
const HEADER: &str = "strict-transport-security";

/// An edge with a site on two custom domains.
async fn start(set: &[&str]) -> TlsEdge {
    let tls = TlsEdge::start(set).await;
    let site = tls.edge.account("quiet-otter").await;
    site.page("index", "<p>mine").await;
    site.serve_files(&[("app.css", "text/css", b"p {}")]).await;
    for domain in [DOMAIN, OTHER] {
        add(&tls.edge, &site, domain, "verified").await;
        tls.insert(domain, &[domain], later()).await;
    }
    tls
}

/// Sets the policy of a domain as its owner does, and waits until a page has it.
async fn set_policy(tls: &TlsEdge, max_age: &str, includes_subdomains: bool, expected: Option<&str>) {
    tls.edge
        .run(&format!(
            "update domains set hsts_max_age = {max_age}, hsts_include_subdomains = {includes_subdomains}
             where domain = '{DOMAIN}'"
        ))
        .await;
    until(async || {
        tls.edge.publish_change(Change::Host { host: DOMAIN.to_owned() }).await;
        policy(&tls.get(DOMAIN, DOMAIN, "/").await).as_deref() == expected
    })
    .await;
}

/// Returns the policy in a response.
fn policy(response: &str) -> Option<String> {
    let head = response.split("\r\n\r\n").next().unwrap();
    let values: Vec<_> = head.lines().filter_map(|line| line.strip_prefix(&format!("{HEADER}: "))).collect();
    assert!(values.len() <= 1, "{head}");
    values.first().map(ToString::to_string)
}

/// Sends a request over TLS and returns the response.
async fn send(tls: &TlsEdge, host: &str, method: &str, path: &str, lines: &str) -> String {
    let mut stream = tls.connect(host).await.unwrap();
    let request = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n{lines}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    stream.flush().await.unwrap();
    let mut text = String::new();
    // The response to a HEAD request has a length and no body.
    if method == "HEAD" {
        while !text.ends_with("\r\n\r\n") {
            text.push(tokio::io::AsyncReadExt::read_u8(&mut stream).await.unwrap().into());
        }
        return text;
    }
    response(&mut stream).await
}

#[tokio::test]
async fn a_policy_is_on_every_response_of_its_domain_over_https() {
    let tls = start(&[]).await;
    assert_eq!(policy(&tls.get(DOMAIN, DOMAIN, "/").await), None, "off until it is set");
    let expected = "max-age=31536000; includeSubDomains";
    set_policy(&tls, "31536000", true, Some(expected)).await;
    let mut is_fast = Vec::new();
    for (method, path, lines, status) in [
        ("GET", "/", "", "200"),
        ("GET", "/", "If-None-Match: *\r\n", "304"),
        ("HEAD", "/", "", "200"),
        ("GET", "/", "TE: trailers\r\n", "200"),
        ("GET", "/app.css", "", "200"),
        ("GET", "/app.css", "Range: bytes=0-1\r\n", "206"),
        ("GET", "/nothing", "", "404"),
        ("GET", "/%zz", "", "404"),
        ("GET", "/robots.txt", "", "200"),
        ("PUT", "/", "", "405"),
    ] {
        for _ in 0..2 {
            let response = send(&tls, DOMAIN, method, path, lines).await;
            assert!(response.starts_with(&format!("HTTP/1.1 {status} ")), "{path}: {response}");
            assert_eq!(policy(&response).as_deref(), Some(expected), "{method} {path} {lines}");
            is_fast.push(is_from_fast_path(&response));
        }
    }
    assert!(is_fast.contains(&true) && is_fast.contains(&false), "{is_fast:?}");
    for (name, host) in [(OTHER, OTHER), (SITE, SITE), ("localhost", "localhost")] {
        assert_eq!(policy(&tls.get(name, host, "/").await), None, "{host}");
    }
    for path in ["/", "/app.css", "/nothing"] {
        assert_eq!(tls.edge.visitor.get(DOMAIN, path).await.header(HEADER), "", "over http: {path}");
    }
    set_policy(&tls, "0", false, Some("max-age=0")).await;
    set_policy(&tls, "null", false, None).await;
}

#[tokio::test]
async fn a_policy_is_sent_over_http2() {
    let tls = start(&[]).await;
    set_policy(&tls, "300", false, Some("max-age=300")).await;
    let mut client = tls.authority.client();
    client.alpn_protocols = vec![b"h2".to_vec()];
    for (host, expected) in [(DOMAIN, Some("max-age=300")), (OTHER, None)] {
        let stream = connect(tls.edge.https(), host, &client).await.unwrap();
        let (send, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        for path in ["/", "/", "/app.css", "/nothing"] {
            let request =
                Request::get(format!("https://{host}{path}")).body(Full::<Bytes>::default()).unwrap();
            let response = send.clone().send_request(request).await.unwrap();
            let policy = response.headers().get(HEADER).map(|value| value.to_str().unwrap());
            assert_eq!(policy, expected, "{host}{path}");
        }
    }
}

#[tokio::test]
async fn a_policy_is_on_redirects_over_https_and_not_on_the_redirect_to_https() {
    let tls = start(&["http.base_url=https://localhost:8443"]).await;
    set_policy(&tls, "300", false, Some("max-age=300")).await;
    let redirect = tls.edge.visitor.get(DOMAIN, "/").await;
    assert_eq!((redirect.status.as_u16(), redirect.header(HEADER)), (308, ""));
    tls.edge
        .run(&format!(
            "update domains set redirect_to = (select id from domains where domain = '{OTHER}')
             where domain = '{DOMAIN}'"
        ))
        .await;
    until(async || {
        tls.edge.publish_change(Change::Host { host: DOMAIN.to_owned() }).await;
        let response = tls.get(DOMAIN, DOMAIN, "/").await;
        assert_eq!(policy(&response).as_deref(), Some("max-age=300"));
        response.starts_with("HTTP/1.1 308 ")
    })
    .await;
}

#[tokio::test]
async fn a_policy_is_sent_through_a_trusted_proxy_that_terminates_tls() {
    let tls = start(&["http.trusted_proxies=[\"127.0.0.0/8\"]"]).await;
    set_policy(&tls, "300", false, Some("max-age=300")).await;
    for path in ["/", "/", "/app.css", "/nothing"] {
        for (proto, expected) in [("https", "max-age=300"), ("http", "")] {
            let headers = [("x-forwarded-proto", proto)];
            let response = tls.edge.visitor.send(http::Method::GET, DOMAIN, path, &headers, "").await;
            assert_eq!(response.header(HEADER), expected, "{path} over {proto}");
        }
    }
}
