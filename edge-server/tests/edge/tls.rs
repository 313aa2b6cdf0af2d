//! Handshakes: which certificate is served by which name, and bad hellos.

use std::time::Duration;

use chrono::TimeDelta;
use rustls::version::{TLS12, TLS13};
use sandbox::test::{until, with_timeout};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::short_pause;
use crate::tls_client::{SITE, SITES_DOMAIN, TlsEdge, connect, get, later, presented};

/// The record of a fatal alert `unrecognized_name`.
const UNRECOGNIZED_NAME: [u8; 7] = [21, 3, 3, 0, 2, 2, 112];

#[tokio::test]
async fn a_name_leads_to_its_certificate_and_no_name_to_that_of_the_base_host() {
    let tls = TlsEdge::start(&[]).await;
    tls.insert("shop.example.org", &["shop.example.org"], later()).await;
    let site = tls.edge.account("quiet-otter").await;
    site.page("index", "<p>over tls").await;
    assert!(tls.get(SITE, SITE, "/").await.ends_with("<p>over tls"));
    assert!(tls.get("localhost", "localhost", "/").await.contains("Web Runtime"));
    let shop = tls.connect("shop.example.org").await.unwrap();
    let base = tls.connect("localhost").await.unwrap();
    assert_ne!(presented(&shop), presented(&base));
    let another = tls.connect(&format!("loud-badger.{SITES_DOMAIN}")).await.unwrap();
    assert_eq!(presented(&another), presented(&tls.connect(SITE).await.unwrap()), "the wildcard's");
    let mut without_name = tls.authority.client();
    without_name.enable_sni = false;
    let nameless = connect(tls.edge.https(), "localhost", &without_name).await.unwrap();
    assert_eq!(presented(&nameless), presented(&base));
}

#[tokio::test]
async fn versions_and_protocols_are_negotiated() {
    let tls = TlsEdge::start(&[]).await;
    for version in [&TLS12, &TLS13] {
        for (offered, chosen) in [
            (vec!["h2", "http/1.1"], Some("h2")),
            (vec!["http/1.1"], Some("http/1.1")),
            (vec!["spdy/1", "h2"], Some("h2")),
            (vec![], None),
        ] {
            let mut client = tls.authority.client_of(&[version]);
            client.alpn_protocols = offered.iter().map(|one| one.as_bytes().to_vec()).collect();
            let stream = connect(tls.edge.https(), "localhost", &client).await.unwrap();
            let connection = stream.get_ref().1;
            assert_eq!(connection.protocol_version(), Some(version.version));
            assert_eq!(connection.alpn_protocol(), chosen.map(str::as_bytes), "{offered:?}");
        }
        let mut client = tls.authority.client_of(&[version]);
        client.alpn_protocols = vec![b"nonsense".to_vec()];
        let error = connect(tls.edge.https(), "localhost", &client).await.unwrap_err();
        assert!(error.to_string().contains("NoApplicationProtocol"), "{error}");
    }
}

#[tokio::test]
async fn an_unknown_or_expired_name_gets_the_alert_unrecognized_name() {
    let tls = TlsEdge::start(&[]).await;
    let expired = crate::fixtures::now() - TimeDelta::seconds(1);
    tls.insert("old.example.org", &["old.example.org"], expired).await;
    for name in ["other.example.org", "old.example.org", "a.b.sites.localhost", "xn--bcher-kva.example"] {
        let error = tls.connect(name).await.unwrap_err();
        assert!(
            error.to_string().contains("UnrecognizedName") || error.to_string().contains("UnrecognisedName"),
            "{error}"
        );
        assert_eq!(reply(&tls, &hello(name)).await, UNRECOGNIZED_NAME, "{name}");
    }
}

#[tokio::test]
async fn unknown_names_cost_no_query() {
    let tls = TlsEdge::start(&[]).await;
    tls.edge.wait_until_subscribed().await;
    let site = tls.edge.account("quiet-otter").await;
    site.page("index", "<p>warm").await;
    // Until the list of names is loaded, a certificate without a signal is found by a query.
    let mut number = 0;
    until(async || {
        number += 1;
        let name = format!("name-{number}.example.org");
        tls.insert(&name, &[&name], later()).await;
        tls.connect(&name).await.is_err()
    })
    .await;
    tls.connect(SITE).await.unwrap();
    tls.edge.postgres.cut();
    for number in 0..200 {
        let name = format!("other-{number}.example.org");
        assert_eq!(
            reply(&tls, &hello(&name)).await,
            UNRECOGNIZED_NAME,
            "without Postgres, which a query needs"
        );
    }
    tls.connect(SITE).await.unwrap();
}

#[tokio::test]
async fn parallel_first_handshakes_cost_one_query() {
    let tls = TlsEdge::start(&[]).await;
    tls.insert("shop.example.org", &["shop.example.org"], later()).await;
    tls.connect("localhost").await.unwrap();
    // All lookups wait for the table; the statement fails if there is more than one.
    let locked = "do $$ declare waiting int; begin
        lock table certificates in access exclusive mode;
        loop
            perform pg_stat_clear_snapshot();
            select count(*) into waiting from pg_stat_activity
              where datname = current_database() and wait_event_type = 'Lock' and query like '%from certificates where name%';
            exit when waiting > 0;
            perform pg_sleep(0.01);
        end loop;
        perform pg_sleep(0.5);
        perform pg_stat_clear_snapshot();
        select count(*) into waiting from pg_stat_activity
          where datname = current_database() and wait_event_type = 'Lock' and query like '%from certificates where name%';
        if waiting <> 1 then raise '% lookups', waiting; end if;
    end $$";
    let handshakes = async {
        let all = (0..40).map(|_| tls.connect("shop.example.org"));
        futures::future::join_all(all).await
    };
    let ((), connected) = with_timeout(async { tokio::join!(tls.edge.run(locked), handshakes) }).await;
    assert!(connected.iter().all(Result::is_ok), "{connected:?}");
}

#[tokio::test]
async fn a_hello_in_pieces_is_read_and_garbage_is_refused() {
    let tls = TlsEdge::start(&[]).await;
    let name = "other.example.org";
    let mut stream = TcpStream::connect(tls.edge.https()).await.unwrap();
    stream.set_nodelay(true).unwrap();
    for byte in hello(name) {
        stream.write_all(&[byte]).await.unwrap();
        tokio::task::yield_now().await;
    }
    assert_eq!(rest(&mut stream).await, UNRECOGNIZED_NAME);
    let hello = hello(name);
    for (at, _) in hello.iter().enumerate().step_by(3) {
        let mut changed = hello.clone();
        changed[at] ^= 0x55;
        let mut stream = TcpStream::connect(tls.edge.https()).await.unwrap();
        stream.write_all(&changed).await.unwrap();
        stream.shutdown().await.unwrap();
        let answer = with_timeout(rest(&mut stream)).await;
        assert!(answer.is_empty() || answer[0] == 21 || answer[0] == 22, "byte {at}: {answer:?}");
    }
    for garbage in [
        &b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"[..],
        &[0; 600],
        &[22, 3, 1, 255, 255, 1],
        &[128, 46, 1, 0, 2],
    ] {
        let mut stream = TcpStream::connect(tls.edge.https()).await.unwrap();
        stream.write_all(garbage).await.unwrap();
        stream.shutdown().await.unwrap();
        let answer = with_timeout(rest(&mut stream)).await;
        assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
    }
    tls.connect("localhost").await.unwrap();
}

#[tokio::test]
async fn a_slow_hello_is_closed_and_keeps_no_other_client_waiting() {
    let tls = TlsEdge::start(&["tls.handshake_timeout=500ms", "tls.max_handshakes=1"]).await;
    let hello = hello("localhost");
    let mut silent = Vec::new();
    for part in [0, 1, 5, hello.len() / 2, hello.len() - 1] {
        let mut stream = TcpStream::connect(tls.edge.https()).await.unwrap();
        stream.write_all(&hello[..part]).await.unwrap();
        silent.push(stream);
    }
    let mut stream = tls.connect("localhost").await.unwrap();
    assert!(get(&mut stream, "localhost", "/").await.contains("Web Runtime"));
    for stream in &mut silent {
        assert!(with_timeout(rest(stream)).await.is_empty());
    }
    // A client that sends its hello and nothing more has the one place for the timeout at most.
    let mut unfinished = TcpStream::connect(tls.edge.https()).await.unwrap();
    unfinished.write_all(&hello).await.unwrap();
    with_timeout(tls.connect("localhost")).await.unwrap();
}

#[tokio::test]
async fn unfinished_handshakes_count_for_their_address() {
    let tls = TlsEdge::start(&["connections.max_per_address=2", "tls.handshake_timeout=1m"]).await;
    let mut first = TcpStream::connect(tls.edge.https()).await.unwrap();
    short_pause().await;
    let mut others = Vec::new();
    for _ in 0..2 {
        others.push(TcpStream::connect(tls.edge.https()).await.unwrap());
    }
    assert!(with_timeout(rest(&mut first)).await.is_empty(), "the idlest makes room");
}

#[tokio::test]
async fn a_shutdown_waits_for_no_handshake() {
    let tls = TlsEdge::start(&["tls.handshake_timeout=1m"]).await;
    let mut stream = TcpStream::connect(tls.edge.https()).await.unwrap();
    stream.write_all(&hello("localhost")[..20]).await.unwrap();
    tls.connect("localhost").await.unwrap();
    tls.edge.stop();
    let closed = tokio::time::timeout(Duration::from_secs(5), rest(&mut stream)).await;
    assert!(closed.unwrap().is_empty());
}

/// Returns a client's hello for a name.
fn hello(name: &str) -> Vec<u8> {
    let mut connection = rustls::ClientConnection::new(
        std::sync::Arc::new(crate::tls_client::any_client()),
        rustls::pki_types::ServerName::try_from(name.to_owned()).unwrap(),
    )
    .unwrap();
    let mut hello = Vec::new();
    connection.write_tls(&mut hello).unwrap();
    hello
}

/// Sends bytes and returns everything until the edge closes the connection.
async fn reply(tls: &TlsEdge, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(tls.edge.https()).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    with_timeout(rest(&mut stream)).await
}

async fn rest(stream: &mut TcpStream) -> Vec<u8> {
    let mut all = Vec::new();
    let _or_reset = stream.read_to_end(&mut all).await;
    all
}
