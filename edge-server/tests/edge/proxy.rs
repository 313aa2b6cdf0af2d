//! The reverse proxy: forwarded and removed headers, and upstream failures.

use http::{Method, StatusCode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::harness::{Edge, TOKEN};

#[tokio::test]
async fn each_path_is_forwarded_unchanged_to_its_service() {
    let edge = Edge::start().await;
    let response = edge.visitor.send(Method::PATCH, "localhost", "/api/x/%2F..?a=%00&b", &[], "body").await;
    assert_eq!((response.status, response.text()), (StatusCode::OK, "from the inside"));
    let received = edge.control_plane.last();
    assert_eq!((received.method.as_str(), received.target.as_str()), ("PATCH", "/api/x/%2F..?a=%00&b"));
    assert_eq!(received.body, "body");
    assert!(edge.collector.all().is_empty());
    edge.visitor.send(Method::POST, "localhost", "/api/collect", &[], "event").await;
    assert_eq!((edge.collector.last().body, edge.control_plane.all().len()), ("event".into(), 1));
}

#[tokio::test]
async fn dashboard_paths_reach_the_control_plane_only_from_the_base_host() {
    let edge = Edge::start().await;
    let paths = [
        "/login?returnTo=%2Fclaim%2Fx",
        "/login/local",
        "/logout",
        "/claim/abc",
        "/account",
        "/account/switch",
    ];
    for (count, path) in paths.into_iter().enumerate() {
        let response = edge.visitor.send(Method::POST, "localhost", path, &[], "a=b").await;
        assert_eq!((response.status, response.text()), (StatusCode::OK, "from the inside"), "{path}");
        let received = edge.control_plane.last();
        assert_eq!((received.target.as_str(), edge.control_plane.all().len()), (path, count + 1));
    }
    for (host, path) in [("localhost", "/claim"), ("localhost", "/accounts"), ("a-site.localhost", "/login")]
    {
        assert_eq!(edge.visitor.get(host, path).await.status, StatusCode::NOT_FOUND, "{host}{path}");
    }
    assert_eq!(edge.control_plane.all().len(), paths.len());
}

#[tokio::test]
async fn the_edge_overwrites_client_identity_headers() {
    let edge = Edge::start().await;
    let forged = [
        ("x-edge-token", "forged"),
        ("x-edge-token", TOKEN),
        ("x-client-ip", "203.0.113.9"),
        ("x-client-ip", "203.0.113.10"),
        ("x-forwarded-for", "203.0.113.9"),
        ("x-forwarded-host", "evil.test"),
        ("x-forwarded-proto", "https"),
        ("x-real-ip", "203.0.113.9"),
        ("forwarded", "for=203.0.113.9"),
        ("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
        ("tracestate", "a=b"),
        ("baggage", "a=b"),
    ];
    edge.visitor.send(Method::GET, "localhost", "/api/account", &forged, "").await;
    let received = edge.control_plane.last();
    assert_eq!(received.header("x-edge-token"), TOKEN);
    assert_eq!(received.header("x-client-ip"), "127.0.0.1");
    for (name, _) in &forged[4..] {
        assert_eq!(received.header(name), "", "{name}");
    }
}

#[tokio::test]
async fn a_trusted_proxy_may_name_the_client_address() {
    let edge = Edge::with(&["http.trusted_proxies=[\"127.0.0.0/8\"]"]).await;
    let forwarded = [("x-forwarded-for", "198.51.100.1, 203.0.113.9")];
    edge.visitor.send(Method::GET, "localhost", "/api/account", &forwarded, "").await;
    let received = edge.control_plane.last();
    assert_eq!(
        received.header("x-client-ip"),
        "203.0.113.9",
        "only the address that the trusted proxy added counts"
    );
    assert_eq!(received.header("x-forwarded-for"), "");
}

#[tokio::test]
async fn hop_by_hop_headers_are_not_forwarded() {
    let edge = Edge::start().await;
    let request = "GET /api/account HTTP/1.1\r\nHost: localhost\r\nConnection: close, X-Secret-Hop, x-edge-token\r\n\
                   X-Secret-Hop: 1\r\nKeep-Alive: timeout=5\r\nProxy-Connection: keep-alive\r\nTE: trailers\r\n\
                   Upgrade: websocket\r\nProxy-Authorization: Basic eA==\r\nExpect: 100-continue\r\n\
                   Authorization: Bearer key\r\nAccept: text/html\r\n\r\n";
    let response = edge.visitor.raw(request.as_bytes()).await;
    assert!(response.contains("from the inside"), "{response}");
    let received = edge.control_plane.last();
    for name in [
        "connection",
        "x-secret-hop",
        "keep-alive",
        "proxy-connection",
        "te",
        "upgrade",
        "proxy-authorization",
        "expect",
    ] {
        assert_eq!(received.header(name), "", "{name}");
    }
    assert_eq!(received.header("x-edge-token"), TOKEN, "a `Connection` header cannot remove it");
    assert_eq!(
        (received.header("authorization"), received.header("accept")),
        ("Bearer key".into(), "text/html".into())
    );
    assert_eq!(received.header("host"), edge.control_plane.address.to_string());
    let lower = response.to_lowercase();
    assert!(lower.contains("x-inner: said"), "{response}");
    assert!(!lower.contains("x-of-this-hop") && !lower.contains("timeout=5"), "{response}");
}

#[tokio::test]
async fn only_the_service_behind_compresses_its_answers() {
    let edge = Edge::start().await;
    let accepted = [("accept-encoding", "gzip, br")];
    let response = edge.visitor.send(Method::GET, "localhost", "/api/account", &accepted, "").await;
    assert_eq!(edge.control_plane.last().header("accept-encoding"), "gzip, br");
    assert!(!response.headers.contains_key("content-encoding"));
    assert_eq!(response.text(), "from the inside");
}

#[tokio::test]
async fn cookies_are_forwarded_in_both_directions() {
    let edge = Edge::start().await;
    let cookies = [("cookie", "a=1; b=2")];
    let response = edge.visitor.send(Method::GET, "localhost", "/api/account", &cookies, "").await;
    assert_eq!(edge.control_plane.last().header("cookie"), "a=1; b=2");
    let set: Vec<_> = response.headers.get_all("set-cookie").iter().collect();
    assert_eq!(set, ["a=1; HttpOnly", "b=2"]);
}

#[tokio::test]
async fn split_http2_cookies_are_joined() {
    let edge = Edge::start().await;
    let cookies = [("cookie", "a=1"), ("cookie", "b=2")];
    let response = edge.visitor.over_http2().send(Method::GET, "", "/api/account", &cookies, "").await;
    assert_eq!(response.status, StatusCode::OK);
    assert_eq!(edge.control_plane.last().header("cookie"), "a=1; b=2");
}

#[tokio::test]
async fn a_valid_request_id_is_kept_and_an_invalid_one_replaced() {
    let edge = Edge::start().await;
    let send = async |id: &str| {
        let response =
            edge.visitor.send(Method::GET, "localhost", "/api/account", &[("x-request-id", id)], "").await;
        let inner = edge.control_plane.last().header("x-request-id");
        assert_eq!(response.header("x-request-id"), inner, "response and upstream request have the same id");
        inner
    };
    assert_eq!(send("req-12345678").await, "req-12345678");
    for wrong in ["short", "with space in it", "<script>alert(1)</script>", &"x".repeat(65), ""] {
        let made = send(wrong).await;
        assert!(made.len() == 32 && made != wrong, "{wrong}: {made}");
    }
    let (one, other) = (send("").await, send("").await);
    assert_ne!(one, other);
    for path in ["/", "/nothing", "/p/nothing-here"] {
        assert!(!edge.visitor.get("localhost", path).await.header("x-request-id").is_empty(), "{path}");
    }
}

#[tokio::test]
async fn an_unknown_path_and_a_wrong_method_are_problems() {
    let edge = Edge::start().await;
    edge.visitor.get("localhost", "/nothing").await.problem(404, "not_found");
    edge.visitor.get("localhost", "/api").await.problem(404, "not_found");
    let wrong = edge.visitor.send(Method::POST, "localhost", "/", &[], "").await;
    wrong.problem(405, "method_not_allowed");
    assert!(wrong.header("allow").contains("GET"));
}

#[tokio::test]
async fn a_refused_connection_reports_that_nothing_changed() {
    let edge = Edge::with(&["upstreams.control_plane=http://127.0.0.1:1"]).await;
    let response = edge.visitor.send(Method::POST, "localhost", "/api/pages", &[], "{}").await;
    let problem = response.problem(503, "unavailable");
    assert!(problem["detail"].as_str().unwrap().contains("nothing was changed"), "{problem}");
    assert_eq!(response.header("retry-after"), "2");
}

#[tokio::test]
async fn a_dropped_connection_reports_an_unknown_outcome() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("upstreams.control_plane=http://{}", listener.local_addr().unwrap());
    // Reads the request and closes the connection, like a service that is killed while handling it.
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut buffer = [0; 1_024];
            let _request = stream.read(&mut buffer).await;
        }
    });
    let edge = Edge::with(&[&url]).await;
    let response = edge.visitor.send(Method::POST, "localhost", "/api/pages", &[], "{}").await;
    let problem = response.problem(503, "unavailable");
    let detail = problem["detail"].as_str().unwrap();
    assert!(!detail.contains("nothing was changed") && detail.contains("not known"), "{detail}");
    assert_eq!(response.header("retry-after"), "", "an unknown outcome has no Retry-After");
    let read = edge.visitor.get("localhost", "/api/pages").await.problem(503, "unavailable");
    assert!(
        read["detail"].as_str().unwrap().contains("nothing was changed"),
        "a read never changes anything"
    );
}

#[tokio::test]
async fn an_aborted_request_does_not_affect_the_next_one() {
    let edge = Edge::start().await;
    let head = "POST /api/pages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nhalf";
    for _ in 0..5 {
        let mut stream = edge.visitor.connect().await;
        stream.write_all(head.as_bytes()).await.unwrap();
        drop(stream);
    }
    for _ in 0..5 {
        let response = edge.visitor.send(Method::POST, "localhost", "/api/pages", &[], "whole").await;
        assert_eq!(response.text(), "from the inside");
        assert_eq!(edge.control_plane.last().body, "whole");
    }
}

#[tokio::test]
async fn deploy_requests_have_a_longer_timeout() {
    let edge = Edge::with(&["upstreams.response_timeout=100ms"]).await;
    let held = edge.control_plane.hold_responses();
    let deploy = edge.visitor.send(Method::POST, "localhost", "/api/deploy/x/process", &[], "");
    let other = async {
        sandbox::test::until(async || !edge.control_plane.all().is_empty()).await;
        edge.visitor.get("localhost", "/api/pages").await.problem(503, "unavailable");
        drop(held);
    };
    let (response, ()) = tokio::join!(deploy, other);
    assert_eq!(response.status, StatusCode::OK, "{}", response.text());
}
