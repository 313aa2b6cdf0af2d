//! Resolves a site token to its site and account. Both known and unknown tokens are cached, so that neither a busy site
//! nor guessed tokens reach Postgres.

use std::time::{Duration, Instant};

use cache::{Bounds, Bus, BusEvent, StaleOnErrorCache};
use contract::{Change, Signal};
use domain::tracking::Dropped;
use futures::StreamExt as _;
use service::Shutdown;
use store::read_pool::{ReadError, ReadPool};
use store::sites::SiteOwner;

/// Enough for some hundred thousand sites.
const MAX_CACHE_BYTES: u64 = 32 * 1024 * 1024;
/// How long a stale entry is used after a failed reload, before Postgres is queried again.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// Age limit of entries while no signals arrive, so that a suspended site does not go on counting.
const MAX_AGE_WITHOUT_SIGNALS: Duration = Duration::from_secs(1);

/// Finds sites by token. Clones share the cache.
#[derive(Clone)]
pub(crate) struct FindSite {
    lookups: ReadPool,
    cache: StaleOnErrorCache<String, Option<SiteOwner>>,
}

/// The result of a lookup.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Site {
    Known(SiteOwner),
    /// Postgres is unavailable and the token is not cached. The event is stored with its token, and the site is looked
    /// up when the segment is sent.
    Unresolved,
}

impl Site {
    pub(crate) fn owner(&self) -> Option<&SiteOwner> {
        match self {
            Self::Known(owner) => Some(owner),
            Self::Unresolved => None,
        }
    }
}

impl FindSite {
    pub(crate) fn new(lookups: ReadPool, max_age: Duration) -> Self {
        let bounds = Bounds { max_bytes: MAX_CACHE_BYTES, max_age, retry_interval: RETRY_INTERVAL };
        // The token, its owner, and the overhead of a cache entry.
        let weigh =
            |token: &String, _: &Option<SiteOwner>| u32::try_from(token.len() + 200).unwrap_or(u32::MAX);
        Self { lookups, cache: StaleOnErrorCache::new(bounds, weigh) }
    }

    pub(crate) async fn step(&self, site_token: &str) -> Result<Site, Dropped> {
        let now = Instant::now();
        let owner = match self.cache.peek(site_token, now) {
            Some(owner) => owner,
            // Boxed: the future of a Postgres query is large and would enlarge the future of every event.
            None => {
                match Box::pin(self.cache.get(&site_token.to_owned(), now, self.load(site_token))).await {
                    Ok(found) => found.value,
                    Err(error) => {
                        tracing::debug!(%error, "a site lookup failed: it is repeated when the segment is sent");
                        return Ok(Site::Unresolved);
                    }
                }
            }
        };
        owner.map(Site::Known).ok_or(Dropped::UnknownSite)
    }

    /// Returns the cached owner, fresh or stale, without a query.
    pub(crate) fn peek(&self, site_token: &str) -> Option<SiteOwner> {
        self.cache.peek_stale(site_token).flatten()
    }

    async fn load(&self, site_token: &str) -> Result<Option<SiteOwner>, ReadError> {
        let find = async |conn: &mut store::Conn| store::sites::find_owner_by_token(conn, site_token).await;
        self.lookups.query(find).await
    }

    /// Invalidates changed sites as their signals arrive.
    pub(crate) async fn listen(self, bus: Bus<Signal>, shutdown: Shutdown) -> anyhow::Result<()> {
        self.cache.limit_age(Some(MAX_AGE_WITHOUT_SIGNALS));
        let mut events = std::pin::pin!(bus.subscribe());
        while let Some(Some(event)) = shutdown.unless_requested(events.next()).await {
            match event {
                BusEvent::Message(Signal::Changed(Change::AnalyticsSite { site_token, .. })) => {
                    // Removed, not marked stale: this signal also reports that a site was suspended or deleted.
                    self.cache.remove(&site_token);
                }
                BusEvent::Message(_) => {}
                BusEvent::Lagged => {
                    self.cache.mark_all_stale();
                    self.cache.limit_age(None);
                }
                BusEvent::Disconnected => self.cache.limit_age(Some(MAX_AGE_WITHOUT_SIGNALS)),
            }
        }
        Ok(())
    }
}
