//! Drops events of visitors who send `DNT: 1` or `Sec-GPC: 1`, unless the site's owner disabled that.

use domain::tracking::Dropped;

use super::find_site::Site;
use crate::incoming_event::IncomingEvent;

/// An unresolved site counts as one that honors the headers.
pub(crate) fn honor_dnt(event: &IncomingEvent, site: Site) -> Result<(), Dropped> {
    let honors_dnt = site.owner().is_none_or(|owner| owner.honour_dnt);
    if event.do_not_track && honors_dnt { Err(Dropped::DoNotTrack) } else { Ok(()) }
}
