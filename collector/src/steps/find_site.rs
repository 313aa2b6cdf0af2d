//! Whose site a token is. Remembered, the unknown too, so that neither a busy site nor a stranger's guesses reach
//! Postgres.

use std::time::{Duration, Instant};

use cache::{Bounds, Bus, BusEvent, StaleOnErrorCache};
use contract::{Change, Signal};
use domain::tracking::{Dropped, Hit};
use futures::StreamExt as _;
use service::Shutdown;
use store::read_pool::{ReadError, ReadPool};
use store::sites::SiteOwner;

/// Bytes of remembered sites: some hundred thousand.
const REMEMBERED_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// How long a site is counted as it was remembered before Postgres, being away, is asked again.
const ASK_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Finds sites by their token. Clones share what they remember.
#[derive(Clone)]
pub(crate) struct FindSite {
    lookups: ReadPool,
    known: StaleOnErrorCache<String, Option<SiteOwner>>,
}

/// Whose site it is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Site {
    /// Theirs.
    Known(SiteOwner),
    /// Postgres is away, and nobody has asked before. The event is kept, and its site found when it is sent on.
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
    pub(crate) fn new(lookups: ReadPool, fresh_for: Duration) -> Self {
        let bounds =
            Bounds { max_bytes: REMEMBERED_BYTES_MAX, max_age: fresh_for, retry_interval: ASK_AGAIN_AFTER };
        // The token, its owner, and what the cache itself needs for an entry.
        let weigh =
            |token: &String, _: &Option<SiteOwner>| u32::try_from(token.len() + 200).unwrap_or(u32::MAX);
        Self { lookups, known: StaleOnErrorCache::new(bounds, weigh) }
    }

    pub(crate) async fn step(&self, hit: &Hit) -> Result<Site, Dropped> {
        let now = Instant::now();
        let owner = match self.known.peek(&hit.site_token, now) {
            Some(owner) => owner,
            // Apart, as what waits for Postgres is large, and every event would carry its place along.
            None => match Box::pin(self.known.get(&hit.site_token, now, self.load(&hit.site_token))).await {
                Ok(found) => found.value,
                Err(error) => {
                    tracing::debug!(%error, "an event's site can't be looked up: that is done when it is sent on");
                    return Ok(Site::Unresolved);
                }
            },
        };
        owner.map(Site::Known).ok_or(Dropped::UnknownSite)
    }

    /// Whose site that was when it was last looked up, if it ever was.
    pub(crate) fn peek(&self, hit: &Hit) -> Option<SiteOwner> {
        self.known.peek_stale(&hit.site_token).flatten()
    }

    async fn load(&self, site_token: &str) -> Result<Option<SiteOwner>, ReadError> {
        let find = async |conn: &mut store::Conn| store::sites::find_owner_by_token(conn, site_token).await;
        self.lookups.query(find).await
    }

    /// Forgets what has changed, as soon as it is said.
    pub(crate) async fn listen(self, bus: Bus<Signal>, shutdown: Shutdown) -> anyhow::Result<()> {
        let mut news = std::pin::pin!(bus.subscribe());
        while let Some(Some(event)) = shutdown.unless_requested(news.next()).await {
            match event {
                BusEvent::Message(Signal::Changed(Change::AnalyticsSite { site_token, .. })) => {
                    // Not even stale: this is how the collector hears that a site was suspended, or has ended.
                    self.known.remove(&site_token);
                }
                BusEvent::Message(_) => {}
                BusEvent::Lagged => self.known.mark_all_stale(),
            }
        }
        Ok(())
    }
}
