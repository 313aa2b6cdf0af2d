//! Classifies the traffic source of an event by the rules in `domain::sources`.

use domain::sources::{Clues, Source};
use domain::tracking::Hit;

/// Returns the source and channel. Most events have none: they are direct or follow another page of the same visit.
pub(crate) fn classify_source(hit: &Hit) -> Source {
    Source::of(Clues {
        source: &hit.campaign.source,
        medium: &hit.campaign.medium,
        campaign: &hit.campaign.name,
        click: hit.campaign.click,
        referrer_host: &hit.referrer_host,
    })
}
