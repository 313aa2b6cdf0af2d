//! Where the visit came from: the rules are `domain::sources`.

use domain::sources::{Clues, Source};
use domain::tracking::Hit;

/// Most events are of visits that came from nowhere in particular, or of a page within one.
pub(crate) fn classify_source(hit: &Hit) -> Source {
    Source::of(Clues {
        source: &hit.campaign.source,
        medium: &hit.campaign.medium,
        campaign: &hit.campaign.name,
        click: hit.campaign.click,
        referrer_host: &hit.referrer_host,
    })
}
