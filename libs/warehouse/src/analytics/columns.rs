//! SQL of the tables: columns of dimensions and conditions of ranges.

use domain::analytics::{Dimension, Filter, Subject};

use super::statement::Statement;

/// Condition of `events`: those of the site in the range.
pub(super) const EVENTS: &str = "site_id = {site:UUID} AND received_at >= fromUnixTimestamp64Milli({from:Int64}) \
                                 AND received_at < fromUnixTimestamp64Milli({to:Int64})";

/// Condition of `sessions`: the site's visits that overlap the range. None lasts longer than a day, so that older ones
/// need not be read.
pub(super) const VISITS: &str = "site_id = {site:UUID} \
                                 AND start >= fromUnixTimestamp64Milli({from:Int64} - 90000000) \
                                 AND start < fromUnixTimestamp64Milli({to:Int64}) \
                                 AND ended >= fromUnixTimestamp64Milli({from:Int64})";

/// Condition of `sessions`: visits that continue under the visitor's id of the next day.
pub(super) const OVER_MIDNIGHT: &str = "toDate(start) < toDate(ended)";

/// Selects the pairs of ids that belong to one visitor around midnight (UTC): events of the first half hour contain the
/// id of the day before.
pub(super) const LINKS: &str = "SELECT DISTINCT visitor, previous FROM events WHERE site_id = {site:UUID} \
                                AND received_at >= fromUnixTimestamp64Milli({from:Int64} - 90000000) \
                                AND received_at < fromUnixTimestamp64Milli({to:Int64} + 90000000) AND previous != 0";

/// Condition of `events`: page views.
pub(super) const PAGE_VIEWS: &str = "name = 'page_view'";
/// Condition of `events`: reports of engagement.
pub(super) const ENGAGEMENT: &str = "name = 'engagement' AND engagement_ms > 0";
/// Condition of `events`: all but reports of engagement.
pub(super) const DONE: &str = "name != 'engagement'";

/// The column of `events`.
pub(super) fn event_column(dimension: Dimension) -> &'static str {
    match dimension {
        Dimension::Url => "path",
        other => session_column(other),
    }
}

/// The column of `sessions`; for a page it is the entry page.
pub(super) fn session_column(dimension: Dimension) -> &'static str {
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

/// Whether `events` has the dimension.
pub(super) fn is_in_events(dimension: Dimension) -> bool {
    dimension.subject() != Subject::Visit
}

/// Returns ` AND …` for each filter.
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
