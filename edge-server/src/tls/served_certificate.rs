//! A certificate, ready to be served.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use domain::certificates::KEY_PURPOSE;
use domain::encryption::MasterKey;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use rustls::sign::CertifiedKey;
use store::tls_certificates::StoredCertificate;

use super::server_config;
use crate::sites::classify_host::without_port;

/// About the memory of a parsed key and of the settings of its handshakes.
const KEY_BYTES: usize = 4 * 1024;

/// A certificate with its key and the settings of its handshakes.
pub(crate) struct ServedCertificate {
    pub(super) config: Arc<ServerConfig>,
    /// The names that it covers, some with a wildcard.
    names: Vec<String>,
    not_after: DateTime<Utc>,
    bytes: usize,
}

impl ServedCertificate {
    /// Decrypts and parses the certificate of `name`. Its handshakes have the settings of `template`.
    pub(super) fn parse(
        name: &str,
        issued: &StoredCertificate,
        master_key: &MasterKey,
        template: &ServerConfig,
    ) -> anyhow::Result<Self> {
        let chain = CertificateDer::pem_slice_iter(issued.chain.as_bytes()).collect::<Result<Vec<_>, _>>()?;
        let key = PrivatePkcs8KeyDer::from(master_key.open(KEY_PURPOSE, &issued.sealed_key)?);
        let own = chain.first().ok_or_else(|| anyhow::anyhow!("the chain is empty"))?;
        let mut names: Vec<String> =
            webpki::EndEntityCert::try_from(own)?.valid_dns_names().map(str::to_ascii_lowercase).collect();
        // A client that connected by this name accepts the certificate, whatever the certificate says.
        if !names.iter().any(|covered| covered == name) {
            names.push(name.to_owned());
        }
        let bytes = KEY_BYTES
            + chain.iter().map(|one| one.len()).sum::<usize>()
            + names.iter().map(String::len).sum::<usize>();
        let certified = CertifiedKey::from_der(chain, key.into(), template.crypto_provider())?;
        Ok(Self {
            config: Arc::new(server_config::with_certificate(template, certified)),
            names,
            not_after: issued.not_after,
            bytes,
        })
    }

    /// Returns whether the certificate covers a host, as the client wrote it.
    pub(crate) fn covers(&self, raw_host: &str) -> bool {
        let host = without_port(raw_host).trim_end_matches('.');
        let parent = host.split_once('.').map(|(_, parent)| parent);
        self.names.iter().any(|name| match name.strip_prefix("*.") {
            Some(domain) => parent.is_some_and(|parent| parent.eq_ignore_ascii_case(domain)),
            None => name.eq_ignore_ascii_case(host),
        })
    }

    /// Returns whether the certificate may still be served.
    pub(super) fn is_unexpired(&self, now: DateTime<Utc>) -> bool {
        now < self.not_after
    }

    /// Returns the approximate memory that it takes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}
