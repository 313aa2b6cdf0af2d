//! Host classification (site, base host or unknown) and the paths a site rejects.

use http::{Method, StatusCode};

use crate::harness::Edge;

#[tokio::test]
async fn classifies_site_base_and_unknown_hosts() {
    let edge = Edge::start().await;
    let site = edge.account("quiet-otter").await;
    site.page("index", "<p>at home").await;
    for host in [
        "quiet-otter.localhost",
        "quiet-otter.localhost:8080",
        "Quiet-Otter.LOCALHOST:1",
        "quiet-otter.localhost.",
    ] {
        let response = edge.visitor.get(host, "/").await;
        assert_eq!((response.status, response.text()), (StatusCode::OK, "<p>at home"), "{host}");
    }
    for host in ["localhost", "LOCALHOST:8080", "127.0.0.1", "[::1]:8080"] {
        assert!(edge.visitor.get(host, "/").await.text().starts_with("Web Runtime"), "{host}");
    }
    for host in [
        "example.com",
        "a.quiet-otter.localhost",
        "absent-here.localhost",
        "quiet-otter.localhost.example.com",
    ] {
        let response = edge.visitor.get(host, "/").await;
        assert_eq!(response.status, StatusCode::NOT_FOUND, "{host}");
        assert_eq!(response.header("content-type"), "text/plain; charset=utf-8", "{host}");
    }
}

#[tokio::test]
async fn invalid_site_names_answer_404() {
    let edge = Edge::start().await;
    for host in ["xn--mnchen-3ya.localhost", "-a-.localhost", "a%00b.localhost", "a'b.localhost"] {
        assert_eq!(edge.visitor.get(host, "/").await.status, StatusCode::NOT_FOUND, "{host}");
    }
    let long = format!("{}.localhost", "a".repeat(4_000));
    assert_eq!(edge.visitor.get(&long, "/").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn the_host_of_an_absolute_target_overrides_the_header() {
    let edge = Edge::start().await;
    let (mine, other) = (edge.account("quiet-otter").await, edge.account("loud-badger").await);
    mine.page("index", "<p>mine").await;
    other.page("index", "<p>other").await;
    let response = edge
        .visitor
        .raw(b"GET http://quiet-otter.localhost/ HTTP/1.1\r\nHost: loud-badger.localhost\r\nConnection: close\r\n\r\n")
        .await;
    assert!(response.starts_with("HTTP/1.1 200") && response.ends_with("<p>mine"), "{response}");
}

#[tokio::test]
async fn rejects_two_host_headers() {
    let edge = Edge::start().await;
    let site = edge.account("quiet-otter").await;
    site.page("index", "<p>x").await;
    let twice =
        b"GET / HTTP/1.1\r\nHost: quiet-otter.localhost\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    assert!(edge.visitor.raw(twice).await.starts_with("HTTP/1.1 400"));
}

#[tokio::test]
async fn rejects_connect_requests() {
    let edge = Edge::start().await;
    for target in ["localhost:80", "quiet-otter.localhost:443", "example.com:443"] {
        let request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\nConnection: close\r\n\r\n");
        let response = edge.visitor.raw(request.as_bytes()).await;
        assert!(response.starts_with("HTTP/1.1 40"), "{target}: {response}");
    }
    assert!(edge.control_plane.all().is_empty());
}

#[tokio::test]
async fn rejects_a_target_that_is_only_an_authority() {
    let edge = Edge::start().await;
    edge.account("quiet-otter").await.page("index", "<p>x").await;
    for target in ["localhost:80", "quiet-otter.localhost", "quiet-otter.localhost:443"] {
        let request = format!("GET {target} HTTP/1.1\r\nHost: {target}\r\nConnection: close\r\n\r\n");
        let response = edge.visitor.raw(request.as_bytes()).await;
        assert!(response.starts_with("HTTP/1.1 400"), "{target}: {response}");
    }
}

#[tokio::test]
async fn an_http2_host_that_differs_from_the_authority_is_rejected() {
    let edge = Edge::start().await;
    let site = edge.account("quiet-otter").await;
    site.page("index", "<p>mine").await;
    edge.account("loud-badger").await.page("index", "<p>other").await;
    let http2 = edge.visitor.http2().await;
    // The second request is answered from the cache.
    for _ in 0..2 {
        let same = http2.get(&site.host, "/", &[("host", "Quiet-Otter.localhost")]).await;
        assert_eq!((same.status, same.text()), (StatusCode::OK, "<p>mine"));
        for host in ["loud-badger.localhost", "localhost", "quiet-otter.localhost:8080"] {
            let other = http2.get(&site.host, "/", &[("host", host)]).await;
            assert_eq!(other.status, StatusCode::BAD_REQUEST, "{host}: {}", other.text());
        }
    }
}

#[tokio::test]
async fn a_tenant_can_not_answer_for_certificate_authorities() {
    let edge = Edge::start().await;
    let site = edge.account("quiet-otter").await;
    site.page("404", "<p>the site's own").await;
    let files = [".well-known/acme-challenge/x", ".well-known/pki-validation/x", ".well-known/security.txt"];
    site.serve_files(&files.map(|path| (path, "text/plain", &b"a tenant's"[..]))).await;
    for path in [
        "/.well-known/acme-challenge/x",
        "/.well-known/pki-validation/x",
        "/.well-known/%61cme-challenge/x",
        "/%2ewell-known/acme-challenge/x",
        "/.well-known/acme-challenge/absent",
    ] {
        let response = edge.visitor.get(&site.host, path).await;
        assert_eq!(response.status, StatusCode::NOT_FOUND, "{path}");
        assert!(!response.text().contains("the site's own"), "{path}: {}", response.text());
        assert_eq!(edge.visitor.get("localhost", path).await.status, StatusCode::NOT_FOUND, "{path}");
    }
    assert_eq!(edge.visitor.get(&site.host, "/.well-known/security.txt").await.text(), "a tenant's");
}

#[tokio::test]
async fn site_hosts_accept_only_get_and_head() {
    let edge = Edge::start().await;
    let site = edge.account("quiet-otter").await;
    site.page("index", "<p>x").await;
    for method in [Method::POST, Method::PUT, Method::DELETE, Method::PATCH, Method::OPTIONS] {
        let response = edge.visitor.send(method.clone(), &site.host, "/", &[], "").await;
        assert_eq!(response.status, StatusCode::METHOD_NOT_ALLOWED, "{method}");
        assert_eq!(response.header("allow"), "GET, HEAD", "{method}");
    }
}

#[tokio::test]
async fn the_api_is_not_on_a_sites_host() {
    let edge = Edge::start().await;
    let site = edge.account("quiet-otter").await;
    for path in ["/api/account", "/api/collect", "/f/00000000-0000-0000-0000-000000000000", "/p/index"] {
        assert_eq!(edge.visitor.get(&site.host, path).await.status, StatusCode::NOT_FOUND, "{path}");
    }
    assert!(edge.control_plane.all().is_empty() && edge.collector.all().is_empty());
}

#[tokio::test]
async fn escaped_paths_are_decoded() {
    let edge = Edge::start().await;
    let site = edge.account("quiet-otter").await;
    site.page("about", "<p>us").await;
    site.page("docs/start", "<p>start").await;
    for path in ["/about", "/%61bout", "/%61%62%6F%75%74", "/docs/start", "/docs/%73tart"] {
        assert_eq!(edge.visitor.get(&site.host, path).await.status, StatusCode::OK, "{path}");
    }
    for path in ["/docs%2Fstart", "/docs%2fstart", "/%FF", "/%", "/%2", "/%6", "/about%00", "/%E2%82"] {
        assert_eq!(edge.visitor.get(&site.host, path).await.status, StatusCode::NOT_FOUND, "{path}");
    }
}

#[tokio::test]
async fn dot_segments_cannot_leave_a_site() {
    let edge = Edge::start().await;
    let (site, other) = (edge.account("quiet-otter").await, edge.account("loud-badger").await);
    site.page("about", "<p>us").await;
    other.page("secret", "<p>secret").await;
    for path in [
        "/../secret",
        "/about/../../loud-badger/secret",
        "/%2e%2e/secret",
        "/..%2fsecret",
        "//secret",
        "/./secret",
        "/secret//",
        "/\\..\\secret",
        "/secret",
        "/etc/passwd",
        "/../../../../etc/passwd",
    ] {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", site.host);
        let response = edge.visitor.raw(request.as_bytes()).await;
        assert!(response.starts_with("HTTP/1.1 404"), "{path}: {response}");
    }
    for path in ["/./about", "//about"] {
        assert_eq!(edge.visitor.get(&site.host, path).await.text(), "<p>us", "{path} is a page of the site");
    }
}
