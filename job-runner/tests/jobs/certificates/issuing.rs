//! Certificates are issued by HTTP-01 and TLS-ALPN-01, with external account binding, for domains and for the base host.

use contract::{Change, Signal};
use futures::StreamExt as _;
use rcgen::PublicKeyData as _;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use sandbox::pebble::Options;
use sandbox::test::{eventually, with_timeout};

use super::authority::{Authority, open_key};
use super::responders;
use crate::fixture::account::now;

#[tokio::test(flavor = "multi_thread")]
async fn a_verified_domain_gets_a_certificate_by_http_01_and_the_edges_are_notified() {
    let Some(authority) = Authority::start(&Options::default()).await else { return };
    let redis = &authority.account.redis;
    let bus: cache::Bus<Signal> = cache::Bus::connect(&redis.url, &redis.prefix).unwrap();
    let mut events = std::pin::pin!(bus.subscribe());
    assert_eq!(events.next().await, Some(cache::BusEvent::Lagged));
    authority.verified_domain("www.shop.example").await;
    let running = authority.run(&["acme.challenges=[\"http-01\"]"]).await;

    let issued = authority.issued("www.shop.example").await;
    let signal = Signal::Changed(Change::Certificate { name: "www.shop.example".to_owned() });
    let notified = async { while events.next().await != Some(cache::BusEvent::Message(signal.clone())) {} };
    with_timeout(notified).await;
    let chain: Vec<_> = CertificateDer::pem_slice_iter(issued.chain.as_ref().unwrap().as_bytes())
        .collect::<Result<_, _>>()
        .unwrap();
    assert_eq!(chain.len(), 2, "with the intermediate certificate");
    let (_, first) = x509_parser::parse_x509_certificate(&chain[0]).unwrap();
    let key = open_key(&issued.sealed_key.unwrap());
    assert_eq!(first.public_key().raw, key.subject_public_key_info(), "the sealed key is the certificate's");
    assert_eq!(issued.not_after.unwrap().timestamp(), first.validity().not_after.timestamp());
    assert!(issued.issuer.unwrap().contains("Pebble Intermediate CA"));
    assert!(issued.renew_at > Some(now()) && issued.renew_at < issued.not_after);
    assert_eq!(issued.next_attempt_at, issued.renew_at);
    assert_eq!((issued.error_code, issued.order_url), (None, None));
    let account = &authority.account;
    assert_eq!(account.number("select count(*) from acme_challenges").await, 0);
    assert_eq!(account.number("select count(*) from acme_orders where issued_at is not null").await, 1);
    assert_eq!(account.number("select count(*) from acme_accounts").await, 1);
    running.stop().await;
    assert_eq!(authority.pebble.issued(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_domain_gets_a_certificate_by_tls_alpn_01() {
    let Some(authority) = Authority::start(&Options::default()).await else { return };
    responders::tls_alpn_01(authority.pebble.tls_port(), authority.account.database.db.clone()).await;
    authority.verified_domain("alpn.example").await;
    let _running = authority.run(&["acme.challenges=[\"tls-alpn-01\"]"]).await;
    authority.issued("alpn.example").await;
    assert_eq!(authority.pebble.issued(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_failure_the_other_kind_of_challenge_is_tried() {
    let Some(authority) = Authority::start(&Options::default()).await else { return };
    // Port 80 answers for another address only; TLS is answered here.
    authority.verified_domain("tls-only.example").await;
    let _running = authority.run(&["acme.challenges=[\"tls-alpn-01\", \"http-01\"]"]).await;
    let issued = authority.issued("tls-only.example").await;
    assert_eq!(issued.failed_attempts, 0);
    let refused = "select count(*) from acme_orders where failed_at is not null";
    assert_eq!(authority.account.number(refused).await, 1, "TLS-ALPN-01 had no answer");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_authority_that_requires_an_external_account_refuses_others_in_its_own_words() {
    let key = "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W";
    let binding = Some(("kid-1".to_owned(), key.to_owned()));
    let options = Options { external_account: binding, ..Options::default() };
    let Some(authority) = Authority::start(&options).await else { return };
    authority.verified_domain("bound.example").await;
    let running = authority.run(&[]).await;
    let refused = authority.certificate_when("bound.example", |one| one.failed_attempts > 0).await;
    assert_eq!(refused.error_code.as_deref(), Some("acme_refused"));
    assert!(refused.error.as_ref().unwrap().contains("externalAccountBinding"), "{refused:?}");
    running.stop().await;

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("key");
    std::fs::write(&file, format!("{key}\n")).unwrap();
    let file = format!("acme.eab_hmac_key_file={}", file.display());
    let _running = authority.run(&["acme.eab_key_id=kid-1", &file]).await;
    let issued = authority.issued("bound.example").await;
    assert_eq!((issued.error_code, issued.error), (None, None));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_base_host_gets_its_own_certificate_at_the_start() {
    let Some(authority) = Authority::start(&Options::default()).await else { return };
    let settings = [
        "http.base_url=https://app.runtime.example",
        "http.sites_domain=sites.pages.example",
        "outbound.allow=",
    ];
    let running = authority.run(&settings).await;
    let issued = authority.issued("app.runtime.example").await;
    running.stop().await;
    // A restart orders nothing.
    let _running = authority.run(&settings).await;
    authority.verified_domain("later.example").await;
    authority.issued("later.example").await;
    assert_eq!(authority.certificate("app.runtime.example").await.unwrap(), issued);
    assert_eq!(authority.pebble.issued(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unverified_domain_is_not_ordered() {
    let Some(authority) = Authority::start(&Options::default()).await else { return };
    authority.domain("stranger.example", "failed").await;
    let _running = authority.run(&[]).await;
    let stopped = authority.certificate_when("stranger.example", |one| one.next_attempt_at.is_none()).await;
    assert_eq!(stopped.chain, None);
    // One that was served keeps its certificate, and its renewal is put off.
    authority.verified_domain("former.example").await;
    let issued = authority.issued("former.example").await;
    let orders = authority.account.number("select count(*) from acme_orders").await;
    authority
        .account
        .change("update domains set dns_status = 'failed' where domain = 'former.example'")
        .await;
    authority.make_due("former.example").await;
    let put_off = authority.certificate_when("former.example", |one| one.next_attempt_at > Some(now())).await;
    assert_eq!((put_off.chain, put_off.failed_attempts), (issued.chain, 0));
    assert_eq!((orders, authority.account.number("select count(*) from acme_orders").await), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn several_job_runners_order_each_certificate_once() {
    let Some(authority) = Authority::start(&Options::default()).await else { return };
    for number in 0..30 {
        authority.verified_domain(&format!("www.shop-{number}.example")).await;
    }
    // Leases don't expire on a busy machine: an order that is taken over may be made again.
    let run = async || authority.run(&["acme.lease_ttl=2m"]).await;
    let runners = [run().await, run().await, run().await];
    let account = &authority.account;
    let issued = async || account.number("select count(*) from certificates where chain is not null").await;
    // The timeout applies to each step of progress, because the machine may be slow.
    let mut before = 0;
    while before < 30 {
        before = eventually(async || Some(issued().await).filter(|count| *count > before)).await;
    }
    for runner in runners {
        runner.stop().await;
    }
    assert_eq!(authority.pebble.issued(), 30);
    assert_eq!(account.number("select count(*) from acme_orders").await, 30);
    assert_eq!(authority.pebble.orders(), 30);
    assert_eq!(account.number("select count(*) from acme_accounts").await, 1);
}
