//! The cache of short URLs: which site's page a bare `/p/<slug>` belongs to.

use std::time::{Duration, Instant};

use cache::StaleOnErrorCache;
use store::read_pool::{ReadError, ReadPool};

use crate::config::{Cache, weight};
use crate::metrics::CacheName;

/// Enough for half a million short URLs.
const MAX_BYTES: u64 = 64 << 20;

/// Site names by slug. Slugs without a page are cached too.
pub(crate) struct ShortUrlCache {
    lookups: ReadPool,
    sites: StaleOnErrorCache<String, Option<String>>,
}

impl ShortUrlCache {
    pub(crate) fn new(lookups: ReadPool, config: &Cache) -> Self {
        let weigh = |slug: &String, _: &Option<String>| weight(128 + slug.len());
        Self { lookups, sites: CacheName::ShortUrls.new_cache(config.bounds(MAX_BYTES), weigh) }
    }

    /// Returns the name of the site with the page of the short URL.
    pub(crate) async fn find(&self, slug: &str) -> Result<Option<String>, ReadError> {
        let load = self.lookups.query(async |conn| store::pages::find_short_address(conn, slug).await);
        Ok(self.sites.get(&slug.to_owned(), Instant::now(), load).await?.value)
    }

    pub(crate) fn invalidate(&self, slug: &str) {
        self.sites.invalidate(&slug.to_owned());
    }

    /// Limits the age of entries while no signals arrive; `None` lifts the limit.
    pub(crate) fn limit_age(&self, limit: Option<Duration>) {
        self.sites.limit_age(limit);
    }

    pub(crate) fn invalidate_all(&self) {
        self.sites.mark_all_stale();
    }
}
