//! What TLS connections share: certificates, ticket keys, and the number of handshakes in progress.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use domain::encryption::MasterKey;
use rustls::ServerConfig;
use rustls::server::ProducesTickets;
use service::config::ExposeSecret;
use service::{Clock, Rng};
use store::read_pool::{ReadError, ReadPool};

use super::certificate_cache::CertificateCache;
use super::handshake_slots::HandshakeSlots;
use super::served_certificate::ServedCertificate;
use super::server_config;
use super::ticketer::Ticketer;
use crate::config::Config;

/// The shared state of TLS connections.
pub(crate) struct TlsTermination {
    certificates: CertificateCache,
    pub(super) ticketer: Arc<Ticketer>,
    pub(super) master_key: MasterKey,
    pub(super) template: ServerConfig,
    pub(super) handshakes: HandshakeSlots,
    pub(super) handshake_timeout: Duration,
}

impl TlsTermination {
    /// `None` without a master key, which a listener for HTTPS needs.
    ///
    /// # Errors
    /// The setting of the master keys is not valid.
    pub(crate) fn new(
        config: &Config,
        lookups: ReadPool,
        clock: &Clock,
        rng: &Rng,
    ) -> anyhow::Result<Option<Self>> {
        let master_key = config.secrets.master_key.expose_secret();
        if master_key.is_empty() {
            return Ok(None);
        }
        let master_key = MasterKey::parse(master_key).context("it needs the control-plane's keys")?;
        let ticketer = Ticketer::new(rng.clone());
        let template = server_config::template(Arc::clone(&ticketer) as Arc<dyn ProducesTickets>)?;
        let certificates = CertificateCache::new(
            lookups,
            &config.cache,
            master_key.clone(),
            template.clone(),
            clock.clone(),
        );
        Ok(Some(Self {
            certificates,
            ticketer,
            master_key,
            template,
            handshakes: HandshakeSlots::new(config.tls.max_handshakes),
            handshake_timeout: config.tls.handshake_timeout,
        }))
    }

    /// Returns the unexpired certificate of a name. Fails if it is not cached and Postgres does not answer.
    pub(crate) async fn find_certificate(
        &self,
        name: &str,
    ) -> Result<Option<Arc<ServedCertificate>>, ReadError> {
        self.certificates.find(name).await
    }

    /// Reads the names that have a certificate if that is due, so that handshakes for other names need no query.
    pub(super) async fn load_names(&self) -> Result<(), ReadError> {
        self.certificates.load_names().await
    }

    /// Marks a certificate stale: it is read again before its next use.
    pub(crate) fn invalidate(&self, name: &str) {
        self.certificates.invalidate(name);
    }

    /// Marks all certificates stale.
    pub(crate) fn invalidate_all(&self) {
        self.certificates.invalidate_all();
    }

    /// Limits the age of certificates while no signals arrive; `None` lifts the limit.
    pub(crate) fn limit_age(&self, limit: Option<Duration>) {
        self.certificates.limit_age(limit);
    }
}
