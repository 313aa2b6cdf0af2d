//! Visitors who say `DNT: 1` or `Sec-GPC: 1` are not counted, unless the site's owner decided otherwise.

use domain::tracking::Dropped;

use super::find_site::Site;
use crate::pipeline::IncomingEvent;

/// A site that isn't known yet is taken for one that heeds.
pub(crate) fn honor_dnt(arrival: &IncomingEvent, site: Site) -> Result<(), Dropped> {
    let heeds = site.owner().is_none_or(|owner| owner.honour_dnt);
    if arrival.unwilling && heeds { Err(Dropped::DoNotTrack) } else { Ok(()) }
}
