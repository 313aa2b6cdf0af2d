//! Several edges: sessions that resume at any of them, and renewed certificates.

use std::time::{Duration, Instant};

use rustls::HandshakeKind;
use rustls::version::{TLS12, TLS13};
use sandbox::test::{eventually, until};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use crate::tls_client::{SITE, TlsEdge, connect, get, later, presented};

#[tokio::test]
async fn a_session_resumes_at_another_edge_in_both_versions() {
    let tls = TlsEdge::start(&[]).await;
    let other = tls.edge.start_another();
    for version in [&TLS12, &TLS13] {
        // Each edge has the keys a moment after its start.
        until(async || {
            let client = tls.authority.client_of(&[version]);
            let mut kinds = Vec::new();
            for edge in [tls.edge.https(), other, tls.edge.https()] {
                // On an overloaded machine a lookup may fail.
                let Ok(mut stream) = connect(edge, "localhost", &client).await else { return false };
                // Tickets of TLS 1.3 arrive before the response.
                assert!(get(&mut stream, "localhost", "/").await.contains("Web Runtime"));
                kinds.push(kind(&stream));
            }
            kinds == [HandshakeKind::Full, HandshakeKind::Resumed, HandshakeKind::Resumed]
        })
        .await;
    }
}

#[tokio::test]
async fn edges_that_start_together_make_one_ticket_key_and_three_are_kept() {
    let tls = TlsEdge::start(&[]).await;
    for _ in 0..3 {
        tls.edge.start_another();
    }
    let count = |keys: usize| {
        format!(
            "do $$ begin if (select count(*) from tls_ticket_keys) <> {keys} then raise 'keys'; end if; end $$"
        )
    };
    let has = async |keys: usize| store::execute_raw(&tls.edge.database.db, &count(keys)).await.is_ok();
    until(async || has(1).await).await;
    let mut tx = store::begin(&tls.edge.database.db).await.unwrap();
    for number in 0..5_u128 {
        let key = store::tls_certificates::TicketKey {
            id: uuid::Uuid::from_u128(number),
            sealed_key: vec![1],
            created_at: later() + chrono::TimeDelta::hours(i64::try_from(number).unwrap()),
        };
        let unless_after = key.created_at - chrono::TimeDelta::minutes(30);
        for _ in 0..2 {
            // The second call finds the key of the first.
            store::tls_certificates::rotate_ticket_keys(&mut tx, &key, unless_after).await.unwrap();
        }
    }
    let kept = store::tls_certificates::list_ticket_keys(&mut tx).await.unwrap();
    assert_eq!(kept.iter().map(|key| key.id.as_u128()).collect::<Vec<_>>(), [4, 3, 2]);
    store::commit(tx).await.unwrap();
    assert!(has(3).await);
}

#[tokio::test]
async fn a_renewed_certificate_is_served_by_both_edges_within_a_second_and_no_connection_is_dropped() {
    let tls = TlsEdge::start(&[]).await;
    tls.edge.wait_until_subscribed().await;
    let other = tls.edge.start_another();
    let edges = [tls.edge.https(), other];
    tls.edge.account("quiet-otter").await.page("index", "<p>x").await;
    let mut connections = Vec::new();
    for edge in edges {
        connections.push(connect(edge, SITE, &tls.authority.client()).await.unwrap());
    }
    // The other edge hears signals once it is subscribed.
    let wildcard = "*.sites.localhost";
    eventually(async || {
        let renewed = tls.store(wildcard, &[wildcard], later()).await;
        tls.signal(wildcard).await;
        let signalled = Instant::now();
        while signalled.elapsed() < Duration::from_secs(1) {
            let mut served = Vec::new();
            for edge in edges {
                served.push(presented(&connect(edge, SITE, &tls.authority.client()).await.unwrap()));
            }
            if served.iter().all(|served| *served == renewed) {
                return Some(());
            }
        }
        None
    })
    .await;
    for stream in &mut connections {
        assert!(get(stream, SITE, "/").await.ends_with("<p>x"), "the old connections go on");
    }
}

#[tokio::test]
async fn a_cached_certificate_is_served_without_postgres_and_a_new_one_gets_an_alert() {
    let tls = TlsEdge::start(&["cache.max_age=50ms"]).await;
    tls.connect(SITE).await.unwrap();
    tls.edge.postgres.cut();
    for _ in 0..3 {
        tls.connect(SITE).await.unwrap();
        crate::harness::short_pause().await;
    }
    let new = "shop.example.org";
    tls.store(new, &[new], later()).await;
    // Until its signal is handled, the name may still be an unknown one.
    until(async || {
        tls.signal(new).await;
        let error = tls.connect(new).await.unwrap_err().to_string();
        assert!(error.contains("InternalError") || error.contains("Unrecogni"), "{error}");
        error.contains("InternalError")
    })
    .await;
    tls.connect(SITE).await.unwrap();
    tls.edge.postgres.restore().await;
    until(async || tls.connect(new).await.is_ok()).await;
}

fn kind(stream: &TlsStream<TcpStream>) -> HandshakeKind {
    stream.get_ref().1.handshake_kind().unwrap()
}
