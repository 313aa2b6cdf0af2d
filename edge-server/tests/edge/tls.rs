//! Handshakes: which certificate is served by which name, and bad hellos.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use rustls::pki_types::ServerName;
use rustls::version::{TLS12, TLS13};
use sandbox::test::{until, with_timeout};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::connection_limits::connect_from;
use crate::harness::short_pause;
use crate::tls_client::{SITE, SITES_DOMAIN, TlsEdge, connect, get, hello, later, presented};

/// The record of a fatal alert `unrecognized_name`.
const UNRECOGNIZED_NAME: [u8; 7] = [21, 3, 3, 0, 2, 2, 112];
/// The record of a fatal alert `internal_error`.
const INTERNAL_ERROR: [u8; 7] = [21, 3, 3, 0, 2, 2, 80];

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
async fn a_flood_of_unknown_names_costs_no_query_beside_a_hundred_thousand_known_ones() {
    let tls = TlsEdge::start(&[]).await;
    tls.edge.wait_until_subscribed().await;
    tls.edge
        .run(
            "insert into certificates (name, chain, sealed_key, not_after, created_at)
             select 'known-' || n || '.example.org', 'x', 'x', now() + interval '1 day', now()
             from generate_series(1, 100000) n",
        )
        .await;
    // In the last page of names.
    for name in ["z.example.org", "zz.example.org"] {
        tls.store(name, &[name], later()).await;
    }
    tls.edge.publish_unreadable_signal().await;
    until(async || tls.connect("z.example.org").await.is_ok()).await;
    // Until the list of names is loaded, a certificate without a signal is found by a query.
    let mut number = 0;
    until(async || {
        number += 1;
        let name = format!("name-{number}.example.org");
        tls.store(&name, &[&name], later()).await;
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
    for name in ["known-1.example.org", "known-100000.example.org", "zz.example.org"] {
        assert_eq!(reply(&tls, &hello(name)).await, INTERNAL_ERROR, "{name} is known, and needs a query");
    }
    tls.connect(SITE).await.unwrap();
}

#[tokio::test]
async fn parallel_first_handshakes_cost_one_query() {
    let tls = TlsEdge::start(&[]).await;
    tls.edge.wait_until_subscribed().await;
    tls.store("shop.example.org", &["shop.example.org"], later()).await;
    tls.signal("shop.example.org").await;
    tls.edge.wait_until_signals_handled().await;
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
    let is_locked = "do $$ begin
        if not exists (select from pg_locks
          where relation = 'certificates'::regclass and mode = 'AccessExclusiveLock' and granted)
        then raise 'not locked yet'; end if;
    end $$";
    let handshakes = async {
        until(async || store::execute_raw(&tls.edge.database.db, is_locked).await.is_ok()).await;
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
}

#[tokio::test]
async fn clients_that_send_a_hello_and_nothing_more_do_not_take_all_slots() {
    let tls = TlsEdge::start(&["tls.handshake_timeout=10m", "tls.max_handshakes=2"]).await;
    let mut silent = Vec::new();
    for _ in 0..6 {
        let mut stream = TcpStream::connect(tls.edge.https()).await.unwrap();
        stream.write_all(&hello("localhost")).await.unwrap();
        silent.push(stream);
    }
    let mut stream = with_timeout(tls.connect("localhost")).await.unwrap();
    assert!(get(&mut stream, "localhost", "/").await.contains("Web Runtime"));
    let closed = with_timeout(rest(&mut silent[0])).await;
    assert!(
        !closed.is_empty(),
        "it got the edge's part of the handshake, and then the connection was closed"
    );
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
async fn a_flood_of_slow_hellos_from_one_address_keeps_no_other_address_waiting() {
    let limits = ["connections.max=16", "connections.max_per_address=8", "tls.handshake_timeout=1m"];
    let tls = TlsEdge::start(&limits).await;
    let (attacker, hello) = (Ipv4Addr::new(127, 0, 0, 2), hello("localhost"));
    let mut slow = Vec::new();
    let flood = async |slow: &mut Vec<TcpStream>| {
        for part in (0..hello.len()).step_by(hello.len() / 30) {
            let mut stream = connect_from(attacker, tls.edge.https()).await;
            stream.write_all(&hello[..part]).await.unwrap();
            slow.push(stream);
        }
    };
    flood(&mut slow).await;
    for idlest in slow.drain(..slow.len() - 8) {
        let mut idlest = idlest;
        assert!(with_timeout(rest(&mut idlest)).await.is_empty(), "it made room for newer ones");
    }
    let mut visitors = Vec::new();
    for visitor in 0..8 {
        let plain = connect_from(Ipv4Addr::new(127, 0, 1, visitor), tls.edge.https()).await;
        let connector = TlsConnector::from(Arc::new(tls.authority.client()));
        let name = ServerName::try_from("localhost").unwrap();
        let mut stream = with_timeout(connector.connect(name, plain)).await.unwrap();
        assert!(get(&mut stream, "localhost", "/").await.contains("Web Runtime"));
        visitors.push(stream);
    }
    // All connections are taken now. The attacker replaces its own, though the visitors' are idle longer by then.
    flood(&mut slow).await;
    for stream in &mut visitors {
        assert!(get(stream, "localhost", "/").await.contains("Web Runtime"));
    }
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
