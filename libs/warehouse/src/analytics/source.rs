//! Selects the tables of a query: events, visits, or events joined with their visits.
//!
//! Visits are few and small, so they are used whenever possible, and events for single page views. Only queries that
//! need both are joined, because a join is by far the slowest: the page views of a channel, or the visits with a page.

use domain::analytics::{Dimension, Filter, Metric, MetricQuery, Subject};

use super::aggregate::Aggregate;
use super::columns::{self, DONE, ENGAGEMENT, EVENTS, PAGE_VIEWS, VISITS, and_filters};
use super::join::{Join, with_first_ids};
use super::statement::{Statement, VISIT_MAX};
use super::sums::sections::Section;

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
    /// The visitors with any event in the range.
    pub(super) const ACTIVE_VISITORS: Shape<'static> =
        Shape { metric: Metric::ActiveVisitors, breakdown: None, filters: &[] };

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

    /// Returns the sum and, for a mean, what it is divided by.
    pub(super) fn sums(self, source: Source) -> (Aggregate, Option<Aggregate>) {
        match (source, self.metric) {
            (Source::Visits, Metric::PageViews) => (Aggregate::sum("page_views"), None),
            (Source::Visits, Metric::BounceRate) => (Aggregate::sum("bounce"), Some(Aggregate::COUNT)),
            (Source::Visits, Metric::ViewsPerVisit) => (Aggregate::sum("page_views"), Some(Aggregate::COUNT)),
            (Source::Visits, Metric::AvgSessionDuration) => {
                let duration = "toUInt64(toUnixTimestamp64Milli(ended) - toUnixTimestamp64Milli(start))";
                (Aggregate::sum(duration), Some(Aggregate::COUNT))
            }
            // 64 bits of a hash: among 10 million visits a collision has a probability of 1 in 400,000.
            (Source::Joined, Metric::Visits) => (Aggregate::distinct("cityHash64(first_id, start)"), None),
            (_, Metric::AvgTimeOnPage) => {
                let views = Aggregate::distinct("cityHash64(first_id, start, path)");
                (Aggregate::sum("engagement_ms"), Some(views))
            }
            (Source::Visits, Metric::UniqueVisitors) => (Aggregate::distinct("visitor"), None),
            (Source::Events, Metric::ActiveVisitors) => (Aggregate::distinct(ACTIVE), None),
            (_, Metric::UniqueVisitors | Metric::ActiveVisitors) => (Aggregate::distinct("first_id"), None),
            (_, _) => (Aggregate::COUNT, None),
        }
    }

    /// The column of the breakdown.
    pub(super) fn column(self, source: Source) -> Option<&'static str> {
        let column = match source {
            Source::Visits => columns::session_column,
            Source::Events | Source::Joined => columns::event_column,
        };
        self.breakdown.map(column)
    }

    /// Binds the section's range and returns SQL of the rows, from `FROM` on.
    pub(super) fn rows(
        self,
        source: Source,
        part: RangePart,
        section: Section,
        statement: &mut Statement,
    ) -> String {
        let (events, visits) = (part.of_events(), part.of_visits());
        match source {
            Source::Events => {
                let filters = and_filters(statement, self.filters, columns::event_column);
                let events = format!("{EVENTS}{events} AND {}{filters}", self.kind());
                if self.metric == Metric::UniqueVisitors {
                    let events = with_first_ids(self.column(source).as_slice(), &events);
                    format!("FROM ({events}{})", section.bind_first_ids(statement))
                } else {
                    section.bind_events(statement);
                    format!("FROM events WHERE {events}")
                }
            }
            Source::Visits => {
                section.bind_visits(statement);
                let filters = and_filters(statement, self.filters, columns::session_column);
                format!("FROM sessions FINAL WHERE {VISITS}{visits}{filters}")
            }
            Source::Joined => {
                section.bind_visits(statement);
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

/// The visitor of an event of a few minutes. A visitor has another id after midnight (UTC), but events just after midnight
/// contain the id of the day before.
const ACTIVE: &str = "if(previous != 0 AND toDate(received_at) > {first_day:Date}, previous, visitor)";

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
const WITHIN: &str = "(start >= {from:DateTime64(3, 'UTC')} \
                                 AND ended < {to:DateTime64(3, 'UTC')})";

impl RangePart {
    fn of_visits(self) -> String {
        let hours = VISIT_MAX.num_hours();
        match self {
            Self::Whole => String::new(),
            Self::Within => format!(" AND {WITHIN} AND page_views > 0"),
            // The second condition on `start` is redundant, but lets ClickHouse skip all days between the edges.
            Self::Across => format!(
                " AND (start < {{from:DateTime64(3, 'UTC')}} OR (ended >= {{to:DateTime64(3, 'UTC')}} \
                 AND start >= {{to:DateTime64(3, 'UTC')}} - toIntervalHour({hours})))"
            ),
        }
    }

    fn of_events(self) -> String {
        let hours = VISIT_MAX.num_hours();
        match self {
            Self::Whole | Self::Within => String::new(),
            Self::Across => format!(
                " AND (received_at < {{from:DateTime64(3, 'UTC')}} + toIntervalHour({hours}) \
                 OR received_at >= {{to:DateTime64(3, 'UTC')}} - toIntervalHour({hours}))"
            ),
        }
    }
}
