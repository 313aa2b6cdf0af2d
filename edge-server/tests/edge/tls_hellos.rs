//! Floods of hellos: for unknown names while Redis is away, and of unfinished ones.

use std::io::Write as _;
use std::time::{Duration, Instant};

use futures::future::join_all;
use sandbox::test::with_timeout;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::tls_client::{SITE, TlsEdge, hello, later};

/// The longest hello that the edge reads.
const MAX_HELLO_BYTES: usize = 16 * 1024;
const DECODE_ERROR: [u8; 7] = [21, 3, 3, 0, 2, 2, 50];
const UNRECOGNIZED_NAME: [u8; 7] = [21, 3, 3, 0, 2, 2, 112];

/// Returns the first bytes of a hello that is far longer.
fn part_of_a_hello(bytes: usize) -> Vec<u8> {
    let rest = u16::try_from(bytes - 5).unwrap().to_be_bytes();
    let mut part = [&[22, 3, 1], &rest[..], &[1, 0, 200, 0, 3, 3]].concat();
    part.resize(bytes, 0);
    part
}

async fn send(tls: &TlsEdge, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(tls.edge.https()).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    stream
}

async fn rest(stream: &mut TcpStream) -> Vec<u8> {
    let mut all = Vec::new();
    let _or_reset = with_timeout(stream.read_to_end(&mut all)).await;
    all
}

/// Returns the memory of this process, which the edge is a part of, without the pages of the program's file: code is
/// loaded when it first runs.
fn resident_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1_024
}

#[tokio::test]
async fn a_hello_of_more_than_16_kb_is_refused() {
    let tls = TlsEdge::start(&["tls.handshake_timeout=10m"]).await;
    let mut stream = send(&tls, &part_of_a_hello(MAX_HELLO_BYTES)).await;
    assert_eq!(rest(&mut stream).await, DECODE_ERROR);
}

#[tokio::test]
async fn half_a_hello_of_many_clients_takes_bounded_memory_until_the_timeout() {
    let child = tokio::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "tls_hellos::memory_of_half_a_hello_of_many_clients", "--ignored"])
        .kill_on_drop(true)
        .output()
        .await
        .unwrap();
    let output = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success() && output.contains("1 passed"), "{output}");
}

/// Runs in a child process of the test above, so that no other test takes memory meanwhile.
#[tokio::test]
#[ignore = "part of another test"]
async fn memory_of_half_a_hello_of_many_clients() {
    const CLIENTS: usize = 300;
    let tls = TlsEdge::start(&["tls.handshake_timeout=5s", "connections.max_per_address=0"]).await;
    tls.edge.account("quiet-otter").await.page("index", "<p>warm").await;
    tls.edge.get_until(SITE, "/", |response| response.header("x-cache") == "hit").await;
    let (before, part) = (resident_bytes(), part_of_a_hello(MAX_HELLO_BYTES - 1));
    let mut silent = join_all((0..CLIENTS).map(|_| send(&tls, &part))).await;
    for _ in 0..50 {
        let page = tls.edge.visitor.get(SITE, "/").await;
        assert_eq!((page.text(), page.header("x-cache")), ("<p>warm", "hit"));
    }
    let each = resident_bytes().saturating_sub(before) / CLIENTS;
    let _written = writeln!(std::io::stderr(), "{each} bytes for each unfinished handshake");
    assert!(each < 64 * 1_024, "{each} bytes for each");
    let closed = join_all(silent.iter_mut().map(rest)).await;
    assert!(closed.iter().all(Vec::is_empty), "closed without an answer");
    tls.connect("localhost").await.unwrap();
}

#[tokio::test]
async fn while_redis_is_away_a_flood_of_unknown_names_costs_no_query_for_each() {
    let tls = TlsEdge::start(&["redis.url=redis://127.0.0.1:1"]).await;
    tls.edge.count_reads("certificates").await;
    let started = Instant::now();
    for number in 0..300 {
        let mut stream = send(&tls, &hello(&format!("other-{number}.example.org"))).await;
        assert_eq!(rest(&mut stream).await, UNRECOGNIZED_NAME);
    }
    // The list of names is read every five seconds.
    let reads = started.elapsed().as_secs() / 5 + 3;
    assert!(tls.edge.reads_at_most("certificates", reads).await, "more than {reads}");
}

#[tokio::test]
async fn while_redis_is_away_a_new_certificate_is_found_within_seconds() {
    let tls = TlsEdge::start(&["redis.url=redis://127.0.0.1:1"]).await;
    tls.store("shop.example.org", &["shop.example.org"], later()).await;
    let stored = Instant::now();
    sandbox::test::until(async || tls.connect("shop.example.org").await.is_ok()).await;
    assert!(stored.elapsed() < Duration::from_secs(15), "{:?}", stored.elapsed());
}
