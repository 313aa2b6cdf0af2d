//! The cache of sites by host. Hosts without a site are cached too.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cache::{Served, StaleOnErrorCache};
use chrono::{DateTime, Utc};
use domain::previews::PreviewLabel;
use store::read_pool::{ReadError, ReadPool};
use store::subdomains::Site;
use uuid::Uuid;

use super::classify_host::SiteHost;
use super::connection_cache::{ConnectionSite, Generation, Validity};
use crate::config::{Cache, weight};
use crate::cpu_work::{CpuWork, Tenant};
use crate::metrics::CacheName;

/// About the memory of parsed rules for each byte of their text.
const PARSED_FACTOR: usize = 8;

type CachedSite = Option<Arc<Site>>;

/// Sites by host: subdomains by their names and previews by their labels, which have no dot, and custom domains by their full
/// names.
pub(crate) struct SiteCache {
    lookups: ReadPool,
    sites: StaleOnErrorCache<String, CachedSite>,
    generation: Generation,
    cpu: CpuWork,
}

impl SiteCache {
    pub(crate) fn new(lookups: ReadPool, config: &Cache, cpu: CpuWork) -> Self {
        let weigh = |host: &String, site: &CachedSite| {
            let rules = site.as_ref().map_or(0, |site| site.rules_bytes);
            weight(320 + host.len() + PARSED_FACTOR * rules)
        };
        Self {
            lookups,
            sites: CacheName::Hosts.new_cache(config.bounds(config.max_host_bytes), weigh),
            generation: Generation::default(),
            cpu,
        }
    }

    /// Returns a cached site, to be cached by a connection under the host as written, `raw_host`.
    pub(crate) fn peek(&self, host: SiteHost<'_>, raw_host: &str, now: Instant) -> Option<ConnectionSite> {
        let generation = self.generation.current();
        let (site, until) = self.sites.peek_with_expiry(host.key(), now)?;
        let validity = Validity { until, generation };
        Some(ConnectionSite { host: raw_host.into(), host_label: host.label(), site: site?, validity })
    }

    /// Returns whether a connection's copy is still valid.
    pub(crate) fn is_current(&self, cached: &ConnectionSite, now: Instant) -> bool {
        self.generation.is_current(cached.validity, now)
    }

    /// Returns the site of a host, or of a former name that still redirects to it.
    pub(crate) async fn find(
        &self,
        host: SiteHost<'_>,
        now: DateTime<Utc>,
    ) -> Result<Served<CachedSite>, ReadError> {
        // Not cached, because a subdomain's name with a dot would collide with a custom domain.
        if !host.is_valid() {
            return Ok(Served { value: None, stale: false, hit: true });
        }
        let load = async {
            let find = async |conn: &mut store::Conn| match host {
                SiteHost::Subdomain(name) => store::subdomains::find_site_by_name(conn, name, now).await,
                SiteHost::Preview(PreviewLabel { token, subdomain, .. }) => {
                    store::deploys::previews::find_site(conn, token, subdomain, now).await
                }
                SiteHost::Custom(domain) => store::domains::find_site_by_domain(conn, domain).await,
            };
            let Some(stored) = self.lookups.query(find).await? else { return Ok(None) };
            let (tenant, bytes) = (Tenant::Site(stored.subdomain_id), stored.rules_bytes());
            let parsed = self.cpu.run(tenant, bytes, move || stored.parse()).await;
            parsed.map(|site| Some(Arc::new(site))).map_err(|_busy| ReadError::Unavailable)
        };
        self.sites.get(&host.key().to_owned(), Instant::now(), load).await
    }

    /// Caches a site without a query.
    #[cfg(test)]
    pub(crate) async fn insert(&self, host: &str, site: Site) {
        let load = std::future::ready(Ok::<_, ReadError>(Some(Arc::new(site))));
        self.sites.get(&host.to_owned(), Instant::now(), load).await.unwrap();
    }

    /// Removes a host, and the previews of its subdomain. Its site may be suspended or deleted, so it must not be served
    /// stale.
    pub(crate) fn remove(&self, host: &str) {
        self.sites.remove(&host.to_owned());
        let is_preview = |key: &str| PreviewLabel::parse(key).is_some_and(|label| label.subdomain == host);
        self.sites.remove_where(|key, _| is_preview(key));
        self.generation.bump();
    }

    /// Invalidates all hosts of a site.
    pub(crate) fn invalidate_site(&self, subdomain_id: Uuid) {
        self.sites
            .invalidate_where(|_, site| site.as_ref().is_some_and(|site| site.subdomain_id == subdomain_id));
        self.generation.bump();
    }

    /// Limits the age of entries while no signals arrive; `None` lifts the limit.
    pub(crate) fn limit_age(&self, limit: Option<Duration>) {
        self.sites.limit_age(limit);
        self.generation.bump();
    }

    /// Invalidates every host.
    pub(crate) fn invalidate_all(&self) {
        self.sites.mark_all_stale();
        self.generation.bump();
    }
}
