//! Limits on connections: of one address, of all, and of open files.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::Stdio;
use std::time::Duration;

use http::StatusCode;
use sandbox::test::{until, with_timeout};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::process::Command;

use crate::connections::{HEAD, edge, one_page, rest};
use crate::harness::Edge;

/// An address of this machine beside that of the other clients.
const ATTACKER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// Connects from an address of this machine.
pub(crate) async fn connect_from(ip: Ipv4Addr, to: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((ip, 0).into()).unwrap();
    socket.connect(to).await.unwrap()
}

/// Requests the page over an open connection, which stays open.
async fn request_page(stream: &mut TcpStream) {
    stream.write_all(format!("{HEAD}\r\n").as_bytes()).await.unwrap();
    with_timeout(one_page(stream)).await;
}

/// Starts a request that the control plane does not answer yet. Returns its connection.
async fn busy_connection(edge: &Edge, path: &str) -> TcpStream {
    let mut stream = edge.visitor.connect().await;
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    until(async || edge.control_plane.all().iter().any(|received| received.target == path)).await;
    stream
}

#[tokio::test]
async fn one_address_can_not_take_every_connection() {
    let edge = edge(&["connections.max=16", "connections.max_per_address=8"]).await;
    let to = edge.visitor.address();
    let mut attacking = Vec::new();
    for _ in 0..50 {
        attacking.push(connect_from(ATTACKER, to).await);
    }
    for idlest in attacking.drain(..42) {
        let mut idlest = idlest;
        assert_eq!(with_timeout(rest(&mut idlest)).await, "");
    }
    let mut visitors = Vec::new();
    for visitor in 0..8 {
        let mut visitor = connect_from(Ipv4Addr::new(127, 0, 1, visitor), to).await;
        request_page(&mut visitor).await;
        visitors.push(visitor);
    }
    // All connections are taken now. The attacker replaces its own, even though visitors' are idle longer by then.
    for newest in &mut attacking {
        request_page(newest).await;
    }
    for _ in 0..20 {
        attacking.push(connect_from(ATTACKER, to).await);
    }
    for visitor in &mut visitors {
        request_page(visitor).await;
    }
}

#[tokio::test]
async fn an_address_at_its_limit_loses_idle_connections_and_no_busy_ones() {
    let edge = edge(&["connections.max_per_address=2"]).await;
    let gate = edge.control_plane.hold_responses();
    let mut first = busy_connection(&edge, "/api/first").await;
    let mut idle = edge.visitor.connect().await;
    request_page(&mut idle).await;
    let mut second = busy_connection(&edge, "/api/second").await;
    assert_eq!(with_timeout(rest(&mut idle)).await, "", "the idle connection makes room");
    let mut refused = edge.visitor.connect().await;
    assert_eq!(with_timeout(rest(&mut refused)).await, "", "both others are busy");
    request_page(&mut connect_from(ATTACKER, edge.visitor.address()).await).await;
    drop(gate);
    for busy in [&mut first, &mut second] {
        assert!(with_timeout(rest(busy)).await.ends_with("from the inside"));
    }
    request_page(&mut edge.visitor.connect().await).await;
}

#[tokio::test]
async fn connections_of_a_trusted_proxy_are_not_limited_as_one_client() {
    let trusted = "http.trusted_proxies=[\"127.0.0.1/32\"]";
    let edge = edge(&[trusted, "connections.max_per_address=2"]).await;
    let mut open = Vec::new();
    for _ in 0..6 {
        open.push(edge.visitor.connect().await);
    }
    for stream in &mut open {
        request_page(stream).await;
    }
}

#[tokio::test]
async fn at_the_limit_of_all_connections_an_idle_one_is_replaced_and_busy_ones_are_not() {
    let edge = edge(&["connections.max=2", "connections.max_per_address=0"]).await;
    let gate = edge.control_plane.hold_responses();
    let mut first = busy_connection(&edge, "/api/first").await;
    let mut idle = edge.visitor.connect().await;
    request_page(&mut idle).await;
    let mut second = busy_connection(&edge, "/api/second").await;
    assert_eq!(with_timeout(rest(&mut idle)).await, "");
    let mut waiting = edge.visitor.connect().await;
    waiting.write_all(format!("{HEAD}\r\n").as_bytes()).await.unwrap();
    let early = tokio::time::timeout(Duration::from_millis(300), waiting.readable()).await;
    assert!(early.is_err(), "a connection over the limit was served or closed");
    drop(gate);
    with_timeout(one_page(&mut waiting)).await;
    for busy in [&mut first, &mut second] {
        assert!(with_timeout(rest(busy)).await.ends_with("from the inside"));
    }
}

/// Starts the program with a limit of 1,024 open files, and waits until it answers.
async fn program_with_1024_files(to: SocketAddr, log: &std::path::Path) -> tokio::process::Child {
    let blobs = log.parent().unwrap().display();
    let settings = [
        format!("listen.main={to}"),
        "listen.ops=127.0.0.1:0".to_owned(),
        "http.base_url=http://localhost:8080".to_owned(),
        "http.sites_domain=localhost".to_owned(),
        "secrets.edge_token=0123456789abcdef".to_owned(),
        "connections.max_per_address=0".to_owned(),
        format!("blobs.url={blobs}"),
        // The base host's own page needs no store.
        "store.url=postgres://x@127.0.0.1:1/x".to_owned(),
        "redis.url=redis://127.0.0.1:1".to_owned(),
    ];
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 1024; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_edge-server")]);
    command.args(settings.iter().flat_map(|setting| ["--set", setting]));
    let log = std::fs::File::create(log).unwrap();
    command.stdout(log.try_clone().unwrap()).stderr(Stdio::from(log)).kill_on_drop(true);
    let child = command.spawn().unwrap();
    until(async || TcpStream::connect(to).await.is_ok()).await;
    child
}

#[tokio::test]
async fn idle_connections_under_ulimit_1024_leave_the_edge_answering() {
    assert!(service::open_files::raise_limit(4_096) >= 2_000, "this test needs 2,000 open files");
    let folder = sandbox::test::folder();
    std::fs::create_dir_all(folder.path()).unwrap();
    let log = folder.path().join("log");
    let to = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut program = program_with_1024_files(to, &log).await;
    let mut idle = Vec::new();
    for _ in 0..1_300 {
        idle.push(with_timeout(TcpStream::connect(to)).await.unwrap());
    }
    let visitor = crate::client::Visitor::of(to);
    let response = with_timeout(visitor.get("localhost", "/")).await;
    assert_eq!(response.status, StatusCode::OK);
    // The newest connections are open, the oldest are closed.
    let newest = idle.last_mut().unwrap();
    newest.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await.unwrap();
    assert!(with_timeout(rest(newest)).await.starts_with("HTTP/1.1 200"));
    assert_eq!(with_timeout(idle[0].read(&mut [0])).await.unwrap_or(0), 0);
    program.kill().await.unwrap();
    let log = std::fs::read_to_string(&log).unwrap();
    assert!(log.contains("connections.max is lowered") && log.contains("lowered_to=412"), "{log}");
    assert!(!log.contains("Too many open files"), "{log}");
}
