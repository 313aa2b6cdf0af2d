//! The settings of handshakes, which are the same for all certificates.

use std::sync::Arc;

use rustls::server::{ClientHello, NoServerSessionStorage, ProducesTickets, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::version::{TLS12, TLS13};
use rustls::{ServerConfig, crypto::ring};

/// Returns the settings without a certificate: TLS 1.3 and 1.2, HTTP/2 and HTTP/1.1, resumption by tickets alone, and no
/// early data.
pub(super) fn template(tickets: Arc<dyn ProducesTickets>) -> anyhow::Result<ServerConfig> {
    let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let mut config = builder
        .with_protocol_versions(&[&TLS13, &TLS12])?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(NoCertificate));
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.ticketer = tickets;
    Ok(config)
}

/// Returns `template` with a certificate.
pub(super) fn with_certificate(template: &ServerConfig, certificate: CertifiedKey) -> ServerConfig {
    let mut config = template.clone();
    config.cert_resolver = Arc::new(OneCertificate(Arc::new(certificate)));
    config
}

/// Serves one certificate, whatever the client asks for: it was chosen by name already.
#[derive(Debug)]
struct OneCertificate(Arc<CertifiedKey>);

impl ResolvesServerCert for OneCertificate {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }
}

/// Serves no certificate.
#[derive(Debug)]
struct NoCertificate;

impl ResolvesServerCert for NoCertificate {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        None
    }
}
