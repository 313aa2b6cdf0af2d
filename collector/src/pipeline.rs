//! What happens to an event, step by step: each lets it pass, or says why it ends here.

use std::net::IpAddr;

use axum::body::Bytes;
use chrono::{DateTime, Utc};
use domain::tracking::{Dropped, Hit, parse};
use service::metrics;

use crate::dropped_events::DroppedEvents;
use crate::steps::{
    CheckQuota, Counted, DeriveVisitorId, DropBots, Enrichment, FindSite, Locate, ParseUserAgent, RateLimit,
    Site, Write, classify_source, honor_dnt,
};

/// An event as it arrived.
#[derive(Debug)]
pub(crate) struct IncomingEvent {
    /// What the tracker sent.
    pub(crate) body: Bytes,
    /// Where it was sent from. Used and forgotten.
    pub(crate) ip: IpAddr,
    /// By what. Used and forgotten.
    pub(crate) user_agent: String,
    /// The browser itself says that nobody sits before it.
    pub(crate) headless: bool,
    /// The visitor asks not to be counted.
    pub(crate) unwilling: bool,
    /// When it happened.
    pub(crate) at: DateTime<Utc>,
    /// When it was taken: the same, but where the past is loaded.
    pub(crate) taken_at: DateTime<Utc>,
}

#[cfg(test)]
impl Default for IncomingEvent {
    fn default() -> Self {
        Self {
            body: Bytes::new(),
            ip: [127, 0, 0, 1].into(),
            user_agent: String::new(),
            headless: false,
            unwilling: false,
            at: DateTime::default(),
            taken_at: DateTime::default(),
        }
    }
}

/// The steps with what they need.
pub(crate) struct Pipeline {
    pub(crate) rate_limit: RateLimit,
    pub(crate) find_site: FindSite,
    pub(crate) drop_bots: DropBots,
    pub(crate) check_quota: CheckQuota,
    pub(crate) locate: Locate,
    pub(crate) parse_user_agent: ParseUserAgent,
    pub(crate) derive_visitor_id: DeriveVisitorId,
    pub(crate) write: Write,
    pub(crate) drops: DroppedEvents,
}

impl Pipeline {
    /// Takes an event through the steps, and counts it if one of them dropped it. When this returns `Ok`, the event is
    /// safe, and counted by whoever wrote it: its sender may have hung up by then.
    pub(crate) async fn take(&self, arrival: &IncomingEvent) -> Result<(), Dropped> {
        let ended = match parse(&arrival.body) {
            Ok(hit) => self.steps(arrival, hit).await,
            Err(reason) => Err(reason),
        };
        ended.inspect_err(|reason| self.drop(arrival, *reason))
    }

    async fn steps(&self, arrival: &IncomingEvent, hit: Hit) -> Result<(), Dropped> {
        self.rate_limit.step(arrival)?;
        let site = self.find_site.step(&hit).await?;
        honor_dnt(arrival, site)?;
        self.drop_bots.step(arrival, &hit)?;
        let mut counted = self.check_quota.step(arrival, site).await?;
        self.store(arrival, hit, site, &mut counted).await
    }

    /// Counts a dropped event, for its site too if one is known by the token in it.
    fn drop(&self, arrival: &IncomingEvent, reason: Dropped) {
        count_dropped(reason);
        let owner = parse(&arrival.body).ok().and_then(|hit| self.find_site.peek(&hit));
        if let Some(owner) = owner {
            self.drops.add(owner.site_id, reason, arrival.taken_at);
        }
    }

    /// The steps after which an event counts. Which visit it belongs to is no step: visits are worked out from the
    /// stored events once they are (`Warehouse::recompute_visits`), where late ones and other collectors' are seen too.
    async fn store(
        &self,
        arrival: &IncomingEvent,
        hit: Hit,
        site: Site,
        counted: &mut Counted,
    ) -> Result<(), Dropped> {
        let place = self.locate.step(arrival);
        let agent = self.parse_user_agent.step(arrival, &hit);
        let source = classify_source(&hit);
        let visitor = self.derive_visitor_id.step(arrival, &hit, site).await?;
        self.write.step(arrival, hit, Enrichment { site, place, agent, source, visitor }, counted).await
    }
}

/// Counts an event that ended before the warehouse.
pub(crate) fn count_dropped(reason: Dropped) {
    metrics::counter("collector_events_dropped_total").add(1, &[("reason", reason.word())]);
}
