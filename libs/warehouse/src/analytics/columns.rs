//! SQL of the tables: columns of dimensions and conditions of ranges.

use domain::analytics::{Dimension, Filter, Subject};

use super::statement::Statement;

/// Condition of `events`: those of the site in the range. ClickHouse skips days only by the expression of the table's key,
/// because `received_at` is in the key, too, behind the visitor.
pub(super) const EVENTS: &str = "site_id = {site:UUID} AND toDate(received_at) >= {first_day:Date} \
                                 AND toDate(received_at) <= {last_day:Date} \
                                 AND received_at >= {from:DateTime64(3, 'UTC')} \
                                 AND received_at < {to:DateTime64(3, 'UTC')}";

/// Condition of `sessions`: the site's visits that overlap the range. None lasts longer than a day, so that older ones
/// need not be read.
pub(super) const VISITS: &str = "site_id = {site:UUID} AND toDate(start) >= {began_first_day:Date} \
                                 AND toDate(start) <= {began_last_day:Date} \
                                 AND start >= {began_from:DateTime64(3, 'UTC')} \
                                 AND start < {began_to:DateTime64(3, 'UTC')} \
                                 AND ended >= {from:DateTime64(3, 'UTC')}";

/// Condition of `sessions`: visits that continue under the visitor's id of the next day.
pub(super) const OVER_MIDNIGHT: &str = "toDate(start) < toDate(ended)";

/// Condition of `sessions`: the site's visits that may continue in the range over midnight. Those of the last day need not be read.
pub(super) const VISITS_BEFORE_LAST_DAY: &str = "site_id = {site:UUID} AND toDate(start) >= {earliest_day:Date} \
                                                 AND toDate(start) < {last_day:Date} \
                                                 AND ended >= {from:DateTime64(3, 'UTC')}";

/// Selects the pairs of ids that belong to one visitor around midnight (UTC), for the ids of events in the range: events of the
/// first half hour of a day contain the id of the day before.
pub(super) const LINKS: &str = "SELECT DISTINCT visitor, previous FROM events WHERE site_id = {site:UUID} \
                                AND toDate(received_at) >= {first_day:Date} \
                                AND toDate(received_at) <= {last_day:Date} \
                                AND previous != 0";

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
