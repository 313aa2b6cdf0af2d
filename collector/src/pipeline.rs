//! What happens to an event, step by step: each lets it pass, or says why it ends here.

use std::net::IpAddr;

use axum::body::Bytes;
use chrono::{DateTime, Utc};
use domain::tracking::{Dropped, Hit, parse};
use service::metrics;
use store::sites::SiteOwner;

use crate::steps::{CheckQuota, DropBots, FindSite, NameVisitor, RateLimit, Write};

/// An event as it arrived.
#[derive(Debug)]
pub(crate) struct Arrival {
    /// What the tracker sent.
    pub(crate) body: Bytes,
    /// Where it was sent from. Used and forgotten.
    pub(crate) ip: IpAddr,
    /// By what. Used and forgotten.
    pub(crate) user_agent: String,
    /// When it happened.
    pub(crate) at: DateTime<Utc>,
    /// When it was taken: the same, but where the past is loaded.
    pub(crate) taken_at: DateTime<Utc>,
}

/// The steps with what they need.
pub(crate) struct Pipeline {
    pub(crate) rate_limit: RateLimit,
    pub(crate) find_site: FindSite,
    pub(crate) drop_bots: DropBots,
    pub(crate) check_quota: CheckQuota,
    pub(crate) name_visitor: NameVisitor,
    pub(crate) write: Write,
}

impl Pipeline {
    /// Takes an event through the steps, and counts how it ended. When this returns `Ok`, the event is safe.
    pub(crate) async fn take(&self, arrival: &Arrival) -> Result<(), Dropped> {
        let outcome = self.steps(arrival).await;
        match outcome {
            Ok(()) => metrics::counter("collector_event_accept_total").add(1, &[]),
            Err(reason) => count_dropped(reason),
        }
        outcome
    }

    async fn steps(&self, arrival: &Arrival) -> Result<(), Dropped> {
        let hit = parse(&arrival.body)?;
        self.rate_limit.step(arrival).await?;
        let owner = self.find_site.step(&hit).await?;
        self.drop_bots.step(arrival)?;
        self.check_quota.step(arrival, owner).await?;
        let stored = self.store(arrival, hit, owner).await;
        if stored.is_err() {
            self.check_quota.undo(owner);
        }
        stored
    }

    /// The steps after which an event counts.
    async fn store(&self, arrival: &Arrival, hit: Hit, owner: SiteOwner) -> Result<(), Dropped> {
        let visitor = self.name_visitor.step(arrival, owner).await?;
        self.write.step(arrival, hit, owner, visitor).await
    }
}

/// Counts an event that ended before the warehouse.
pub(crate) fn count_dropped(reason: Dropped) {
    metrics::counter("collector_event_dropped_total").add(1, &[("reason", reason.word())]);
}
