//! The last step: everything known about the event becomes one line on the disk.

use contract::events::Event;
use domain::tracking::{Dropped, Hit};
use service::{Clock, Rng};
use store::sites::SiteOwner;

use crate::pipeline::Arrival;
use crate::segments::Journal;

/// Writes events into the journal.
pub(crate) struct Write {
    pub(crate) journal: Journal,
    pub(crate) clock: Clock,
    pub(crate) rng: Rng,
}

impl Write {
    /// Returns once the event is safe.
    pub(crate) async fn step(
        &self,
        arrival: &Arrival,
        hit: Hit,
        owner: SiteOwner,
        visitor: u64,
    ) -> Result<(), Dropped> {
        let event = Event {
            id: self.rng.uuid_v7(self.clock.now()),
            account_id: owner.account_id,
            site_id: owner.site_id,
            received_at: arrival.at,
            name: hit.name,
            host: hit.host,
            path: hit.path,
            visitor,
            title: hit.title,
            referrer_host: hit.referrer_host,
            utm_source: hit.campaign.source,
            utm_medium: hit.campaign.medium,
            utm_campaign: hit.campaign.name,
            screen: hit.screen.map(|screen| screen.word().to_owned()).unwrap_or_default(),
            props: hit.props,
            engagement_ms: hit.engagement_ms,
            scroll_depth: hit.scroll_depth,
            ..Event::default()
        };
        self.journal.append(&event).await
    }
}
