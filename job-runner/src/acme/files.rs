//! The certificate of the sites domain's wildcard from files that another program renews.

use std::path::Path;

use anyhow::Context as _;
use domain::certificates::KEY_PURPOSE;
use rcgen::KeyPair;
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject as _;
use store::certificates::{IssuedCertificate, replace_certificate};

use super::chain;
use super::settings::Files;
use crate::state::JobState;

/// Stores the certificate if the files changed. A pair that doesn't fit together, as during a renewal, changes nothing.
pub(super) async fn load(state: &JobState, files: &Files, wildcard: &str) -> anyhow::Result<()> {
    let now = state.clock.now();
    let (chain, key) = read(files).await?;
    let pair = KeyPair::try_from(&key).with_context(|| {
        format!("{} must hold an ECDSA, Ed25519 or RSA key in PKCS #8", files.key.display())
    })?;
    let facts = chain::read(&chain, wildcard, &pair, now)
        .with_context(|| format!("{} can't be used", files.certificate.display()))?;
    let sealed_key = state.master_key.seal(KEY_PURPOSE, state.rng.bytes(), &pair.serialize_der());
    let issued = IssuedCertificate {
        chain: &chain,
        sealed_key: &sealed_key,
        issuer: &facts.issuer,
        not_before: facts.not_before,
        not_after: facts.not_after,
        renew_at: None,
    };
    let mut tx = store::begin(&state.db).await?;
    let signals = replace_certificate(&mut tx, wildcard, &issued, now).await?;
    store::commit(tx).await?;
    if !signals.is_empty() {
        tracing::info!(certificate.name = wildcard, certificate.not_after = %facts.not_after, "read a certificate from files");
    }
    super::issuing::publish(state, &signals).await;
    Ok(())
}

async fn read(files: &Files) -> anyhow::Result<(String, PrivateKeyDer<'static>)> {
    let text = async |path: &Path| {
        let text = tokio::fs::read_to_string(path).await;
        text.with_context(|| format!("{} can't be read", path.display()))
    };
    let chain = text(&files.certificate).await?;
    let key = text(&files.key).await?;
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes())
        .with_context(|| format!("{} must hold a private key in PEM", files.key.display()))?;
    Ok((chain, key))
}
