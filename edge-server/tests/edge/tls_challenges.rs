//! The challenges of certificate authorities: HTTP-01 and TLS-ALPN-01.

use std::sync::Arc;
use std::time::Instant;

use futures::StreamExt;
use http::{Method, StatusCode};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, Error, SignatureScheme};
use sandbox::test::until;
use sha2::{Digest, Sha256};
use tokio::io::AsyncReadExt;

use crate::harness::Edge;
use crate::tls_client::{TlsEdge, any_client, connect};

async fn challenge(edge: &Edge, kind: &str, name: &str, token: &str, expires_in: &str) {
    edge.run(&format!(
        "insert into acme_challenges (token, name, kind, key_authorization, expires_at)
         values ('{token}', '{name}', '{kind}', '{token}.thumbprint', now() + interval '{expires_in}')"
    ))
    .await;
}

#[tokio::test]
async fn an_http_challenge_is_answered_on_its_own_host_alone() {
    // Redirects to https are on, and leave challenges out.
    let tls = TlsEdge::start(&["http.base_url=https://localhost:8443"]).await;
    let edge = &tls.edge;
    let site = edge.account("quiet-otter").await;
    site.page("404", "<p>not found").await;
    challenge(edge, "http-01", "shop.example.org", "pending-token", "1 minute").await;
    challenge(edge, "http-01", "localhost", "base-token", "1 minute").await;
    challenge(edge, "http-01", "shop.example.org", "expired-token", "-1 second").await;
    challenge(edge, "tls-alpn-01", "shop.example.org", "alpn-token", "1 minute").await;
    let get = async |host: &str, token: &str| {
        edge.visitor.get(host, &format!("/.well-known/acme-challenge/{token}")).await
    };
    for (host, token) in [
        ("shop.example.org", "pending-token"),
        ("Shop.Example.org:80", "pending-token"),
        ("localhost", "base-token"),
    ] {
        let response = get(host, token).await;
        assert_eq!(
            (response.status, response.text()),
            (StatusCode::OK, format!("{token}.thumbprint").as_str()),
            "{host}"
        );
        assert_eq!(response.header("content-type"), "text/plain; charset=utf-8");
    }
    for (host, token) in [
        ("other.example.org", "pending-token"),
        ("localhost", "pending-token"),
        ("quiet-otter.sites.localhost", "pending-token"),
        ("shop.example.org", "base-token"),
        ("shop.example.org", "expired-token"),
        ("shop.example.org", "alpn-token"),
        ("shop.example.org", "no-such-token"),
        ("shop.example.org", "pending-token/"),
        ("shop.example.org", "%70ending-token"),
        ("shop.example.org", ""),
    ] {
        for _ in 0..2 {
            assert_eq!(get(host, token).await.status, StatusCode::NOT_FOUND, "{token} on {host}");
        }
    }
    let path = "/.well-known/acme-challenge/late-token";
    assert_eq!(get("localhost", "late-token").await.status, StatusCode::NOT_FOUND);
    challenge(edge, "http-01", "localhost", "late-token", "1 minute").await;
    let late = edge.visitor.send(Method::GET, "localhost", path, &[], "").await;
    assert_eq!(late.text(), "late-token.thumbprint", "nothing was cached");
}

#[tokio::test]
async fn a_flood_of_invented_tokens_costs_few_queries_and_delays_no_check_of_an_authority() {
    let edge = Edge::start().await;
    edge.count_reads("acme_challenges").await;
    let began = Instant::now();
    let get = async |token: String| {
        let path = format!("/.well-known/acme-challenge/{token}");
        edge.visitor.get("localhost", &path).await
    };
    let all = futures::stream::iter(0..600).map(|number| get(format!("invented-{number}")));
    let flood = all.buffer_unordered(200).for_each(async |response| {
        assert_eq!(response.status, StatusCode::NOT_FOUND);
    });
    // An authority checks a challenge as soon as it exists.
    let checks = async {
        until(async || !edge.reads_at_most("acme_challenges", 0).await).await;
        for number in 0..3 {
            let token = format!("pending-{number}");
            challenge(&edge, "http-01", "localhost", &token, "1 minute").await;
            assert_eq!(get(token.clone()).await.text(), format!("{token}.thumbprint"));
        }
    };
    tokio::join!(flood, checks);
    let allowed = u64::try_from(began.elapsed().as_millis()).unwrap() / 50 + 2;
    assert!(edge.reads_at_most("acme_challenges", allowed).await, "more than {allowed} queries");
}

#[tokio::test]
async fn an_alpn_challenge_is_answered_with_its_digest_in_a_certificate() {
    let tls = TlsEdge::start(&[]).await;
    challenge(&tls.edge, "tls-alpn-01", "shop.example.org", "pending-token", "1 minute").await;
    challenge(&tls.edge, "tls-alpn-01", "old.example.org", "expired-token", "-1 second").await;
    challenge(&tls.edge, "http-01", "http.example.org", "http-token", "1 minute").await;
    let mut client = any_client();
    client.dangerous().set_certificate_verifier(Arc::new(AnyCertificate));
    client.alpn_protocols = vec![b"acme-tls/1".to_vec()];
    let mut stream = connect(tls.edge.https(), "shop.example.org", &client).await.unwrap();
    let connection = stream.get_ref().1;
    assert_eq!(connection.alpn_protocol(), Some(&b"acme-tls/1"[..]));
    let certificate = connection.peer_certificates().unwrap()[0].to_vec();
    let contains = |part: &[u8]| certificate.windows(part.len()).any(|window| window == part);
    // The object identifier 1.3.6.1.5.5.7.1.31, critical, with the digest in an octet string of 32 bytes.
    let digest = Sha256::digest(b"pending-token.thumbprint");
    let extension = [&[6, 8, 43, 6, 1, 5, 5, 7, 1, 31, 1, 1, 255, 4, 34, 4, 32][..], &digest].concat();
    assert!(contains(&extension) && contains(b"shop.example.org"), "{}", hex::encode(&certificate));
    let mut rest = Vec::new();
    let _closed = stream.read_to_end(&mut rest).await;
    assert!(rest.is_empty(), "nothing else is served");
    for name in ["other.example.org", "old.example.org", "http.example.org", "localhost"] {
        let error = connect(tls.edge.https(), name, &client).await.unwrap_err();
        assert!(error.to_string().contains("Unrecogni"), "{name}: {error}");
    }
    client.alpn_protocols = vec![b"acme-tls/1".to_vec(), b"h2".to_vec()];
    let stream = connect(tls.edge.https(), "localhost", &client).await.unwrap();
    assert_eq!(
        stream.get_ref().1.alpn_protocol(),
        Some(&b"h2"[..]),
        "only a challenge asks for nothing else"
    );
}

/// Accepts every certificate, as a certificate authority does that reads only the extension.
#[derive(Debug)]
struct AnyCertificate;

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        rustls::crypto::ring::default_provider().signature_verification_algorithms.supported_schemes()
    }
}
