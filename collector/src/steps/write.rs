//! The last step: everything known about the event becomes one line on the disk.

use std::sync::Arc;

use contract::events::Event;
use domain::sources::Source;
use domain::tracking::{Dropped, Hit};
use service::{Clock, Rng};

use super::check_quota::Counted;
use super::derive_visitor_id::Visitor;
use super::find_site::Site;
use super::locate::Location;
use super::parse_user_agent::Agent;
use crate::pipeline::IncomingEvent;
use crate::segments::Journal;

/// Writes events into the journal.
pub(crate) struct Write {
    pub(crate) journal: Journal,
    pub(crate) clock: Clock,
    pub(crate) rng: Rng,
}

/// What the steps before found out.
pub(crate) struct Enrichment {
    pub(crate) site: Site,
    pub(crate) place: Location,
    pub(crate) agent: Arc<Agent>,
    pub(crate) source: Source,
    pub(crate) visitor: Visitor,
}

impl Write {
    /// Returns once the event is safe. Handed in, it counts, whether or not somebody still waits for the answer.
    pub(crate) async fn step(
        &self,
        arrival: &IncomingEvent,
        hit: Hit,
        found: Enrichment,
        counted: &mut Counted,
    ) -> Result<(), Dropped> {
        let Enrichment { site, place, agent, source, visitor } = found;
        let owner = site.owner();
        let event = Event {
            id: self.rng.uuid_v7(self.clock.now()),
            account_id: owner.map(|owner| owner.account_id).unwrap_or_default(),
            site_id: owner.map(|owner| owner.site_id).unwrap_or_default(),
            // Kept only until it is known whose site it is.
            site_token: if owner.is_some() { String::new() } else { hit.site_token },
            received_at: arrival.at,
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
            channel: source.channel.word().to_owned(),
            country: place.country,
            region: place.region,
            city: place.city,
            device: agent.device.to_owned(),
            browser: agent.browser.clone(),
            os: agent.os.clone(),
            screen: hit.screen.map(|screen| screen.word().to_owned()).unwrap_or_default(),
            props: hit.props,
            engagement_ms: hit.engagement_ms,
            scroll_depth: hit.scroll_depth,
        };
        let pending = self.journal.append(&event).await?;
        counted.keep();
        pending.written().await.inspect_err(|_| counted.give_back())
    }
}
