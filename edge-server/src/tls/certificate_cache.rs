//! The cache of certificates by name. Names without one are cached too.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use cache::StaleOnErrorCache;
use domain::encryption::MasterKey;
use rustls::ServerConfig;
use service::Clock;
use store::read_pool::{ReadError, ReadPool};

use super::known_names::{KnownNames, PAGE};
use super::served_certificate::ServedCertificate;
use crate::config::{Cache, weight};
use crate::metrics::CacheName;

/// The memory of an entry beside its certificate.
const ENTRY_BYTES: usize = 256;

type CachedCertificate = Option<Arc<ServedCertificate>>;

/// Lookups of uncached names in a second. While the list of names is not loaded, a flood of unknown names must leave Postgres
/// to other queries.
const LOOKUPS_PER_SECOND: u32 = 200;

/// Certificates by name: hosts, and the wildcard of the sites domain.
pub(super) struct CertificateCache {
    lookups: ReadPool,
    certificates: StaleOnErrorCache<String, CachedCertificate>,
    known_names: KnownNames,
    lookup_rate: LookupRate,
    master_key: MasterKey,
    template: ServerConfig,
    clock: Clock,
}

impl CertificateCache {
    pub(super) fn new(
        lookups: ReadPool,
        config: &Cache,
        master_key: MasterKey,
        template: ServerConfig,
        clock: Clock,
    ) -> Self {
        let weigh = |name: &String, certificate: &CachedCertificate| {
            weight(
                ENTRY_BYTES + name.len() + certificate.as_ref().map_or(0, |certificate| certificate.bytes()),
            )
        };
        Self {
            lookups,
            certificates: CacheName::Certificates
                .new_cache(config.bounds(config.max_certificate_bytes), weigh),
            known_names: KnownNames::default(),
            lookup_rate: LookupRate::default(),
            master_key,
            template,
            clock,
        }
    }

    /// Returns the unexpired certificate of a name. Fails if it is not cached and Postgres does not answer.
    pub(super) async fn find(&self, name: &str) -> Result<CachedCertificate, ReadError> {
        let now = Instant::now();
        let certificate = match self.certificates.peek(name, now) {
            Some(certificate) => certificate,
            None if self.known_names.excludes(name) => None,
            None => self.certificates.get(&name.to_owned(), now, self.load_within_rate(name)).await?.value,
        };
        Ok(certificate.filter(|certificate| certificate.is_unexpired(self.clock.now())))
    }

    /// Loads a certificate. Known names have no limit: all of them together are as many as there are certificates.
    async fn load_within_rate(&self, name: &str) -> Result<CachedCertificate, ReadError> {
        if !self.known_names.includes(name) && !self.lookup_rate.count(Instant::now()) {
            return Err(ReadError::Unavailable);
        }
        self.load(name).await
    }

    async fn load(&self, name: &str) -> Result<CachedCertificate, ReadError> {
        let find = async |conn: &mut store::Conn| store::tls_certificates::find_certificate(conn, name).await;
        let Some(issued) = self.lookups.query(find).await? else { return Ok(None) };
        match ServedCertificate::parse(name, &issued, &self.master_key, &self.template) {
            Ok(certificate) => Ok(Some(Arc::new(certificate))),
            Err(error) => {
                tracing::error!(name, %error, "a certificate can't be served");
                Ok(None)
            }
        }
    }

    /// Reads the names that have a certificate if that is due, so that handshakes for other names need no query.
    pub(super) async fn load_names(&self) -> Result<(), ReadError> {
        let limit = i64::try_from(PAGE).unwrap_or(i64::MAX);
        let page = |after: String| async move {
            let list = async |conn: &mut store::Conn| {
                store::tls_certificates::list_certificate_names(conn, &after, limit).await
            };
            self.lookups.query(list).await
        };
        self.known_names.load_if_due(Instant::now(), page).await
    }

    /// Marks a certificate stale: it is read again before its next use.
    pub(super) fn invalidate(&self, name: &str) {
        self.known_names.add(name);
        self.certificates.invalidate(&name.to_owned());
    }

    /// Marks all certificates stale.
    pub(super) fn invalidate_all(&self) {
        self.known_names.clear();
        self.certificates.mark_all_stale();
    }

    /// Limits the age of entries while no signals arrive; `None` lifts the limit.
    pub(super) fn limit_age(&self, limit: Option<Duration>) {
        self.known_names.set_without_signals(limit.is_some());
        self.certificates.limit_age(limit);
    }
}

/// Counts the lookups of the running second.
#[derive(Default)]
struct LookupRate(Mutex<Option<(Instant, u32)>>);

impl LookupRate {
    /// Counts a lookup. Returns `false` if the second has had all of its lookups.
    fn count(&self, now: Instant) -> bool {
        let mut second = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let running =
            second.filter(|(began, _)| now.saturating_duration_since(*began) < Duration::from_secs(1));
        let (began, count) = running.unwrap_or((now, 0));
        *second = Some((began, count.saturating_add(1)));
        count < LOOKUPS_PER_SECOND
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_lookups_is_limited_in_every_second() {
        let (rate, start) = (LookupRate::default(), Instant::now());
        for second in 0..3 {
            let at = start + Duration::from_secs(second);
            let counted = (0..1_000).filter(|_| rate.count(at)).count();
            assert_eq!(counted, LOOKUPS_PER_SECOND as usize);
        }
    }
}
