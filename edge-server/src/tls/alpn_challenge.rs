//! The handshake of a TLS-ALPN-01 challenge (RFC 8737).

use std::sync::Arc;

use rcgen::{CertificateParams, CustomExtension, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::sign::CertifiedKey;
use sha2::{Digest, Sha256};

use super::server_config;

/// The protocol that a certificate authority asks for, and nothing beside it.
pub(super) const PROTOCOL: &[u8] = b"acme-tls/1";

/// Returns the settings that prove the control of a host: a self-signed certificate with the digest of the key
/// authorization.
pub(super) fn server_config(
    template: &ServerConfig,
    host: &str,
    key_authorization: &str,
) -> anyhow::Result<Arc<ServerConfig>> {
    let mut params = CertificateParams::new(vec![host.to_owned()])?;
    let digest = Sha256::digest(key_authorization.as_bytes());
    params.custom_extensions.push(CustomExtension::new_acme_identifier(&digest));
    let key = KeyPair::generate()?;
    let certificate = params.self_signed(&key)?.der().clone();
    let key = PrivatePkcs8KeyDer::from(key.serialize_der());
    let key = template.crypto_provider().key_provider.load_private_key(key.into())?;
    // Not `CertifiedKey::from_der`, which refuses the critical extension.
    let certified = CertifiedKey::new(vec![certificate], key);
    let mut config = server_config::with_certificate(template, certified);
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    Ok(Arc::new(config))
}
