//! The pipeline: one list of steps. Each step lets an event pass or drops it with a reason.

use domain::tracking::{Dropped, Hit, parse};

use crate::dropped_events::{DroppedEvents, count_dropped};
use crate::incoming_event::IncomingEvent;
use crate::steps::{
    CheckQuota, DeriveVisitorId, DropBots, Enrichment, FindSite, Locate, OrderEvents, ParseUserAgent,
    RateLimit, Write, classify_source, detect_loop, honor_dnt,
};

/// The steps and their dependencies.
pub(crate) struct Pipeline {
    pub(crate) rate_limit: RateLimit,
    pub(crate) find_site: FindSite,
    pub(crate) drop_bots: DropBots,
    pub(crate) order_events: OrderEvents,
    pub(crate) check_quota: CheckQuota,
    pub(crate) locate: Locate,
    pub(crate) parse_user_agent: ParseUserAgent,
    pub(crate) derive_visitor_id: DeriveVisitorId,
    pub(crate) write: Write,
    pub(crate) dropped_events: DroppedEvents,
}

impl Pipeline {
    /// Runs all steps. After `Ok` the event is on disk and counted. A dropped event is counted by its reason, and for
    /// its site if that is in the cache.
    pub(crate) async fn process(&self, mut event: IncomingEvent) -> Result<(), Dropped> {
        let mut hit = parse(&event.body).inspect_err(|reason| count_dropped(*reason))?;
        let site_token = std::mem::take(&mut hit.site_token);
        self.run_steps(&mut event, &site_token, hit).await.inspect_err(|reason| {
            count_dropped(*reason);
            if let Some(owner) = self.find_site.peek(&site_token) {
                self.dropped_events.add(owner.site_id, *reason, event.arrived_at);
            }
        })
    }

    /// The steps in order. Assigning events to visits is not one of them: visits are computed from the stored events
    /// (`Warehouse::recompute_visits`), which include late events and those of other collectors.
    async fn run_steps(&self, event: &mut IncomingEvent, site_token: &str, hit: Hit) -> Result<(), Dropped> {
        detect_loop(event)?;
        self.rate_limit.step(event)?;
        let site = self.find_site.step(site_token).await?;
        honor_dnt(event, site)?;
        self.drop_bots.step(event, &hit)?;
        // Before everything that depends on the event's time.
        self.order_events.step(event, site_token, hit.group, hit.sequence).await;
        let reservation = self.check_quota.step(event, site).await?;
        let location = self.locate.step(event);
        let user_agent = self.parse_user_agent.step(event, &hit);
        let source = classify_source(&hit);
        let visitor = self.derive_visitor_id.step(event, site_token, site).await?;
        let enrichment = Enrichment { site_token, site, location, user_agent, source, visitor };
        self.write.step(event, hit, enrichment, reservation).await
    }
}
