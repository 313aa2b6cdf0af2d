//! The last step: writes the enriched event to the journal.

use std::sync::Arc;

use contract::events::Event;
use domain::sources::Source;
use domain::tracking::{Dropped, Hit};
use service::{Clock, Rng};

use super::check_quota::QuotaReservation;
use super::derive_visitor_id::VisitorIds;
use super::find_site::Site;
use super::locate::Location;
use super::parse_user_agent::UserAgent;
use crate::incoming_event::IncomingEvent;
use crate::segments::Journal;

/// Writes events to the journal.
pub(crate) struct Write {
    pub(crate) journal: Journal,
    pub(crate) clock: Clock,
    pub(crate) rng: Rng,
}

/// The results of the steps before.
pub(crate) struct Enrichment<'a> {
    pub(crate) site_token: &'a str,
    pub(crate) site: Site,
    pub(crate) location: Location,
    pub(crate) user_agent: Arc<UserAgent>,
    pub(crate) source: Source,
    pub(crate) visitor: VisitorIds,
}

impl Write {
    /// Returns once the event is on disk. Once the journal has accepted the event it counts against the quota, even if
    /// the client disconnects.
    pub(crate) async fn step(
        &self,
        incoming: &IncomingEvent,
        hit: Hit,
        enrichment: Enrichment<'_>,
        mut reservation: QuotaReservation,
    ) -> Result<(), Dropped> {
        let Enrichment { site_token, site, location, user_agent, source, visitor } = enrichment;
        let owner = site.owner();
        let event = Event {
            id: self.rng.uuid_v7(self.clock.now()),
            account_id: owner.map(|owner| owner.account_id).unwrap_or_default(),
            site_id: owner.map(|owner| owner.site_id).unwrap_or_default(),
            // Stored only until the site is resolved.
            site_token: if owner.is_some() { String::new() } else { site_token.to_owned() },
            received_at: incoming.occurred_at,
            name: hit.name,
            host: hit.host,
            path: hit.path,
            visitor: visitor.id,
            previous: visitor.previous,
            returner: visitor.returner,
            title: hit.title,
            referrer_host: hit.referrer_host,
            utm_source: hit.campaign.source,
            utm_medium: hit.campaign.medium,
            utm_campaign: hit.campaign.name,
            source: source.name,
            channel: source.channel.as_str().to_owned(),
            country: location.country,
            region: location.region,
            city: location.city,
            device: user_agent.device.to_owned(),
            browser: user_agent.browser.clone(),
            os: user_agent.os.clone(),
            screen: hit.screen.map(|screen| screen.as_str().to_owned()).unwrap_or_default(),
            props: hit.props,
            engagement_ms: hit.engagement_ms,
            scroll_depth: hit.scroll_depth,
        };
        let pending = self.journal.append(&event).await?;
        reservation.commit();
        pending.written().await.inspect_err(|_| reservation.cancel())
    }
}
