//! Which host shows which site, or leads to one; remembered, and hosts without a site too.

use std::sync::Arc;
use std::time::Instant;

use cache::{Served, StaleOnErrorCache};
use chrono::{DateTime, Utc};
use store::subdomains::Site;

use super::classify_host::SiteHost;
use crate::config::{Cache, weight};
use crate::read_pool::{ReadError, ReadPool};
use crate::sites::connection_cache::{Generation, Validity};

/// What is known of a host.
pub(crate) type Known = Option<Arc<Site>>;

/// A site as one connection remembers it: visitors ask one host many things.
#[derive(Debug)]
pub(crate) struct Remembered {
    /// The host as it was written.
    pub(crate) host: Box<str>,
    pub(crate) site: Arc<Site>,
    belief: Validity,
}

/// The hosts known so far: subdomains by their names, which have no dot, and custom domains whole.
pub(crate) struct SiteCache {
    lookups: ReadPool,
    known: StaleOnErrorCache<String, Known>,
    forgotten: Generation,
}

impl SiteCache {
    pub(crate) fn new(lookups: ReadPool, config: &Cache) -> Self {
        let weigh = |host: &String, _: &Known| weight(256 + host.len());
        Self {
            lookups,
            known: StaleOnErrorCache::new(config.bounds(config.host_bytes), weigh),
            forgotten: Generation::default(),
        }
    }

    /// The site of a host if that is known right now, to be remembered under what was `written`.
    pub(crate) fn peek(&self, host: SiteHost<'_>, written: &str, now: Instant) -> Option<Remembered> {
        let as_of = self.forgotten.count();
        let (site, until) = self.known.peek_with_expiry(host.key(), now)?;
        Some(Remembered { host: written.into(), site: site?, belief: Validity { until, as_of } })
    }

    /// Whether what a connection remembers is still so.
    pub(crate) fn is_current(&self, remembered: &Remembered, now: Instant) -> bool {
        self.forgotten.is_current(remembered.belief, now)
    }

    /// The site of a host, or of one that was given up and is still kept for it.
    ///
    /// # Errors
    /// It isn't known and Postgres is away.
    pub(crate) async fn find(
        &self,
        host: SiteHost<'_>,
        now: DateTime<Utc>,
    ) -> Result<Served<Known>, ReadError> {
        // Not even remembered: a name with a dot would stand where a domain of that name is looked for.
        if !host.could_be() {
            return Ok(Served { value: None, stale: false, hit: true });
        }
        let look_up = async {
            let find = async |conn: &mut store::Conn| match host {
                SiteHost::Subdomain(name) => store::subdomains::find_site_by_name(conn, name, now).await,
                SiteHost::Custom(domain) => store::domains::find_site_by_domain(conn, domain).await,
            };
            Ok(self.lookups.query(find).await?.map(Arc::new))
        };
        self.known.get(&host.key().to_owned(), Instant::now(), look_up).await
    }

    /// Asks again before the host is served next. What was known is not even served stale: this is how the edge
    /// hears that a site was suspended, or has ended.
    pub(crate) fn forget(&self, host: &str) {
        self.known.remove(&host.to_owned());
        self.forgotten.note();
    }

    /// Asks again about every host.
    pub(crate) fn forget_all(&self) {
        self.known.mark_all_stale();
        self.forgotten.note();
    }
}
