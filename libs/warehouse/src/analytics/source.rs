//! Selects the tables of a query: events, visits, or events joined with their visits.
//!
//! Visits are few and small, so they are used whenever possible, and events for single page views. Only queries that
//! need both are joined, because a join is by far the slowest: the page views of a channel, or the visits with a page.

use domain::analytics::{Dimension, Filter, Metric, MetricQuery, Subject};

use super::columns::{self, DONE, ENGAGEMENT, EVENTS, PAGE_VIEWS, VISITS, and_filters};
use super::join::{Join, with_first_ids};
use super::statement::Statement;

/// The rows that a query reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// Rows of `events`.
    Events,
    /// Rows of `sessions`.
    Visits,
    /// Rows of `events`, each joined with its visit.
    Joined,
}

/// The part of a query that determines its statement.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape<'a> {
    pub(super) metric: Metric,
    pub(super) breakdown: Option<Dimension>,
    pub(super) filters: &'a [Filter],
}

impl<'a> Shape<'a> {
    /// The shape of a total or series.
    pub(super) fn whole(question: &'a MetricQuery) -> Self {
        Self { metric: question.metric, breakdown: None, filters: &question.filters }
    }

    /// The shape of a breakdown.
    pub(super) fn by(question: &'a MetricQuery, dimension: Dimension) -> Self {
        Self { breakdown: Some(dimension), ..Self::whole(question) }
    }

    fn involves(self, subject: Subject) -> bool {
        let filtered = self.filters.iter().map(|filter| filter.dimension);
        filtered.chain(self.breakdown).any(|dimension| dimension.subject() == subject)
    }

    pub(super) fn source(self) -> Source {
        let (page, visit) = (self.involves(Subject::Page), self.involves(Subject::Visit));
        match self.metric {
            Metric::BounceRate | Metric::AvgSessionDuration | Metric::ViewsPerVisit => Source::Visits,
            Metric::Visits if page => Source::Joined,
            Metric::UniqueVisitors if !page => Source::Visits,
            Metric::Visits => Source::Visits,
            Metric::AvgTimeOnPage => Source::Joined,
            Metric::PageViews | Metric::UniqueVisitors | Metric::ActiveVisitors if visit => Source::Joined,
            Metric::PageViews | Metric::UniqueVisitors | Metric::ActiveVisitors => Source::Events,
        }
    }

    /// Whether page views can be summed over visits; only visits that cross an edge of the range need their events.
    pub(super) fn adds_up_visits(self) -> bool {
        self.metric == Metric::PageViews && self.source() == Source::Joined && !self.involves(Subject::Page)
    }

    /// Returns SQL of the two sums, as columns `amount` and `over`.
    pub(super) fn sums(self, source: Source) -> String {
        let (amount, over) = self.amount_and_over(source);
        format!("{amount} AS amount, {over} AS over")
    }

    /// Returns SQL of the two sums.
    pub(super) fn amount_and_over(self, source: Source) -> (String, String) {
        let (amount, over) = match (source, self.metric) {
            (Source::Visits, Metric::PageViews) => ("sum(page_views)", "0"),
            (Source::Visits, Metric::BounceRate) => ("sum(bounce)", "count()"),
            (Source::Visits, Metric::ViewsPerVisit) => ("sum(page_views)", "count()"),
            (Source::Visits, Metric::AvgSessionDuration) => {
                ("sum(toUnixTimestamp64Milli(ended) - toUnixTimestamp64Milli(start))", "count()")
            }
            // 64 bits of a hash: among 10 million visits a collision has a probability of 1 in 400,000.
            (Source::Joined, Metric::Visits) => ("uniqExact(cityHash64(first_id, start))", "0"),
            (_, Metric::AvgTimeOnPage) => {
                ("sum(engagement_ms)", "uniqExact(cityHash64(first_id, start, path))")
            }
            (Source::Visits, Metric::UniqueVisitors) => ("uniqExact(visitor)", "0"),
            (Source::Events, Metric::ActiveVisitors) => (ACTIVE, "0"),
            (_, Metric::UniqueVisitors | Metric::ActiveVisitors) => ("uniqExact(first_id)", "0"),
            (_, _) => ("count()", "0"),
        };
        (format!("toUInt64({amount})"), format!("toUInt64({over})"))
    }

    /// The column of the breakdown.
    pub(super) fn key(self, source: Source) -> Option<&'static str> {
        let column = match source {
            Source::Visits => columns::session_column,
            Source::Events | Source::Joined => columns::event_column,
        };
        self.breakdown.map(column)
    }

    /// Returns SQL of the rows, from `FROM` on.
    pub(super) fn rows(self, source: Source, part: RangePart, statement: &mut Statement) -> String {
        let (events, visits) = (part.of_events(), part.of_visits());
        match source {
            Source::Events => {
                let filters = and_filters(statement, self.filters, columns::event_column);
                let events = format!("{EVENTS}{events} AND {}{filters}", self.kind());
                if self.metric == Metric::UniqueVisitors {
                    format!("FROM ({})", with_first_ids(self.key(source).as_slice(), &events))
                } else {
                    format!("FROM events WHERE {events}")
                }
            }
            Source::Visits => {
                let filters = and_filters(statement, self.filters, columns::session_column);
                format!("FROM sessions FINAL WHERE {VISITS}{visits}{filters}")
            }
            Source::Joined => {
                let (of_event, of_visit): (Vec<_>, Vec<_>) =
                    self.filters.iter().partition(|filter| columns::is_in_events(filter.dimension));
                let (of_event, of_visit) = (
                    and_filters(statement, of_event, columns::event_column),
                    and_filters(statement, of_visit, columns::session_column),
                );
                let (event_columns, visit_columns) = self.joined_columns();
                let join = Join {
                    event_columns,
                    events: format!("{EVENTS}{events} AND {}{of_event}", self.kind()),
                    visit_columns,
                    visits: format!("{VISITS}{visits}{of_visit}"),
                };
                join.rows()
            }
        }
    }

    /// The columns of events and of visits that a join must select.
    fn joined_columns(self) -> (Vec<&'static str>, Vec<&'static str>) {
        let mut of_event = match self.metric {
            Metric::AvgTimeOnPage => vec!["engagement_ms", "path"],
            _ => vec![],
        };
        let mut of_visit = vec![];
        match self.breakdown {
            Some(Dimension::Url) if of_event.contains(&"path") => {}
            Some(dimension) if columns::is_in_events(dimension) => {
                of_event.push(columns::event_column(dimension));
            }
            Some(dimension) => of_visit.push(columns::session_column(dimension)),
            None => {}
        }
        (of_event, of_visit)
    }

    /// The condition of the events that are counted.
    fn kind(self) -> &'static str {
        match self.metric {
            Metric::AvgTimeOnPage => ENGAGEMENT,
            Metric::ActiveVisitors => DONE,
            _ => PAGE_VIEWS,
        }
    }
}

/// Distinct visitors of a few minutes. A visitor has another id after midnight (UTC), but events just after midnight
/// contain the id of the day before.
const ACTIVE: &str = "uniqExact(if(previous != 0 \
                      AND toDate(received_at) > toDate(fromUnixTimestamp64Milli({from:Int64}, 'UTC')), \
                      previous, visitor))";

/// The part of a range that a statement reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RangePart {
    Whole,
    /// Visits with page views that neither began before the range nor continue after it.
    Within,
    /// Visits that cross an edge of the range, and the events within a day of the edges.
    Across,
}

/// Condition of `sessions`: visits that neither began before the range nor continue after it.
pub(super) const WITHIN: &str = "(start >= fromUnixTimestamp64Milli({from:Int64}) \
                                 AND ended < fromUnixTimestamp64Milli({to:Int64}))";

impl RangePart {
    fn of_visits(self) -> String {
        match self {
            Self::Whole => String::new(),
            Self::Within => format!(" AND {WITHIN} AND page_views > 0"),
            // The second condition on `start` is redundant, but lets ClickHouse skip all days between the edges.
            Self::Across => " AND (start < fromUnixTimestamp64Milli({from:Int64}) \
                             OR (ended >= fromUnixTimestamp64Milli({to:Int64}) \
                             AND start >= fromUnixTimestamp64Milli({to:Int64} - 90000000)))"
                .to_owned(),
        }
    }

    fn of_events(self) -> &'static str {
        match self {
            Self::Whole | Self::Within => "",
            Self::Across => {
                " AND (received_at < fromUnixTimestamp64Milli({from:Int64} + 90000000) \
                 OR received_at >= fromUnixTimestamp64Milli({to:Int64} - 90000000))"
            }
        }
    }
}
