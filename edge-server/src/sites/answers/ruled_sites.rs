//! Remembers which sites have redirects, so that a new page of another site costs no search for addresses that lead to it.

use std::convert::Infallible;
use std::time::Instant;

use cache::StaleOnErrorCache;
use store::subdomains::Site;
use uuid::Uuid;

use crate::config::Cache;
use crate::metrics::CacheName;

/// Enough for ten thousand sites with rules.
const MAX_RULED_BYTES: u64 = 2 << 20;
/// Memory of one of them.
const RULED_BYTES: u32 = 192;

/// The sites with `_redirects` that have cached answers. A new page of them may answer any address that a rule leads to it.
/// For a site that was evicted, such an address answers as before until its answer expires.
#[derive(Clone)]
pub(super) struct RuledSites(StaleOnErrorCache<Uuid, ()>);

impl RuledSites {
    pub(super) fn new(config: &Cache) -> Self {
        Self(CacheName::RuledSites.new_cache(config.bounds(MAX_RULED_BYTES), |_: &Uuid, ()| RULED_BYTES))
    }

    /// Adds a site, if it has redirects, before its answer is loaded.
    pub(super) async fn insert(&self, site: &Site) {
        if !site.rules.redirects.is_empty() {
            let added =
                self.0.get(&site.subdomain_id, Instant::now(), async { Ok::<_, Infallible>(()) }).await;
            added.unwrap_or_else(|never| match never {});
        }
    }

    /// Returns whether an answer of the site may have been decided by its rules.
    pub(super) fn contains(&self, subdomain_id: Uuid) -> bool {
        self.0.peek_stale(&subdomain_id).is_some()
    }
}
