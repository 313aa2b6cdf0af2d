//! Where things stand in the tables: columns of dimensions, conditions of ranges.

use domain::analytics::{Dimension, Filter, Subject};

use super::statement::Statement;

/// The site's events of the range.
pub(super) const EVENTS: &str = "site_id = {site:UUID} AND received_at >= fromUnixTimestamp64Milli({from:Int64}) \
                                 AND received_at < fromUnixTimestamp64Milli({to:Int64})";

/// The site's visits going on in the range. None lasts longer than a day, so that those of earlier days need no
/// look.
pub(super) const VISITS: &str = "site_id = {site:UUID} \
                                 AND start >= fromUnixTimestamp64Milli({from:Int64} - 90000000) \
                                 AND start < fromUnixTimestamp64Milli({to:Int64}) \
                                 AND ended >= fromUnixTimestamp64Milli({from:Int64})";

/// A visit that its visitor went on with under the next day's id.
pub(super) const OVER_MIDNIGHT: &str = "toDate(start) < toDate(ended)";

/// Which ids are one visitor's who was there around midnight (UTC): an event of the first half hour names the id
/// of the day before.
pub(super) const LINKS: &str = "SELECT DISTINCT visitor, previous FROM events WHERE site_id = {site:UUID} \
                                AND received_at >= fromUnixTimestamp64Milli({from:Int64} - 90000000) \
                                AND received_at < fromUnixTimestamp64Milli({to:Int64} + 90000000) AND previous != 0";

/// Pages were viewed; names of events are ours, or bound.
pub(super) const PAGE_VIEWS: &str = "name = 'page_view'";
/// A page was looked at for a while.
pub(super) const ENGAGEMENT: &str = "name = 'engagement' AND engagement_ms > 0";
/// Somebody did something.
pub(super) const DONE: &str = "name != 'engagement'";

/// Of what every event of a visitor has a column.
pub(super) fn of_event(dimension: Dimension) -> &'static str {
    match dimension {
        Dimension::Url => "path",
        other => of_visit(other),
    }
}

/// The visit's column; of a page it is the one the visit began at.
pub(super) fn of_visit(dimension: Dimension) -> &'static str {
    match dimension {
        Dimension::Url | Dimension::EntryPage => "entry_path",
        Dimension::ExitPage => "exit_path",
        Dimension::Referrer => "referrer_host",
        Dimension::Country => "country",
        Dimension::City => "city",
        Dimension::Region => "region",
        Dimension::Device => "device",
        Dimension::Browser => "browser",
        Dimension::Os => "os",
        Dimension::UtmSource => "utm_source",
        Dimension::UtmMedium => "utm_medium",
        Dimension::UtmCampaign => "utm_campaign",
        Dimension::Channel => "channel",
    }
}

/// Whether the events themselves say it.
pub(super) fn stands_in_events(dimension: Dimension) -> bool {
    dimension.subject() != Subject::Visit
}

/// ` AND …` for each of these filters.
pub(super) fn and_filters<'a>(
    statement: &mut Statement,
    filters: impl IntoIterator<Item = &'a Filter>,
    column: fn(Dimension) -> &'static str,
) -> String {
    let mut text = String::new();
    for filter in filters {
        text.push_str(" AND ");
        text.push_str(&statement.equals(column(filter.dimension), &filter.value));
    }
    text
}
