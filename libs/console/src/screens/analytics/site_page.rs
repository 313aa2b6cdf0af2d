//! What the pages of a site share: their address and the clock of the site.

use chrono_tz::Tz;
use percent_encoding::utf8_percent_encode;

use crate::api_client::Answer;
use crate::formatting::times::Wall;
use crate::state::Console;
use crate::url_query::PATH_SEGMENT;

/// Returns the path of a site's figures, under which its other pages are.
pub(super) fn root(site_id: &str) -> String {
    format!("/console/analytics/{}", utf8_percent_encode(site_id, PATH_SEGMENT))
}

/// Returns the current time in the zone of a site; UTC if the site is not known.
pub(super) fn site_wall(console: &Console, site: &Answer) -> Wall {
    let zone = site.as_ref().ok().and_then(|site| site["timezone"].as_str()?.parse().ok());
    Wall { now: console.clock.now(), zone: zone.unwrap_or(Tz::UTC) }
}
