//! Who answers: events, visits, or events joined with the visits they belong to.
//!
//! Visits are few and small, so that they answer whatever they can; events answer what is about single page views.
//! Only what needs both is joined, because that is by far the slowest: which page views does a channel have, in
//! which visits was a page looked at.

use domain::analytics::{Dimension, Filter, Metric, Question, Subject};

use super::columns::{self, DONE, ENGAGEMENT, EVENTS, LINKS, OVER_MIDNIGHT, PAGE_VIEWS, VISITS, and_filters};
use super::statement::Statement;

/// Who answers a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// Rows of `events`.
    Events,
    /// Rows of `sessions`.
    Visits,
    /// Events with the visit each belongs to.
    Joined,
}

/// What is asked, as far as a statement depends on it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape<'a> {
    pub(super) metric: Metric,
    pub(super) breakdown: Option<Dimension>,
    pub(super) filters: &'a [Filter],
}

impl<'a> Shape<'a> {
    /// Of the question's total or series.
    pub(super) fn whole(question: &'a Question) -> Self {
        Self { metric: question.metric, breakdown: None, filters: &question.filters }
    }

    /// Of its breakdown by that dimension.
    pub(super) fn by(question: &'a Question, dimension: Dimension) -> Self {
        Self { breakdown: Some(dimension), ..Self::whole(question) }
    }

    fn involves(self, subject: Subject) -> bool {
        let filtered = self.filters.iter().map(|filter| filter.dimension);
        filtered.chain(self.breakdown).any(|dimension| dimension.subject() == subject)
    }

    /// Who answers it.
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

    /// The page views of visits that are wholly within the range need no look at the events.
    pub(super) fn adds_up_visits(self) -> bool {
        self.metric == Metric::PageViews && self.source() == Source::Joined && !self.involves(Subject::Page)
    }

    /// The two sums, over the rows of a source.
    pub(super) fn sums(self, source: Source) -> String {
        let (amount, over) = match (source, self.metric) {
            (Source::Visits, Metric::PageViews) => ("sum(page_views)", "0"),
            (Source::Visits, Metric::BounceRate) => ("sum(bounce)", "count()"),
            (Source::Visits, Metric::ViewsPerVisit) => ("sum(page_views)", "count()"),
            (Source::Visits, Metric::AvgSessionDuration) => {
                ("sum(toUnixTimestamp64Milli(ended) - toUnixTimestamp64Milli(start))", "count()")
            }
            // Of the 64 bits of a hash, one pair in 10 million visits has a chance of 1 in 400,000 to fall together.
            (Source::Joined, Metric::Visits) => ("uniqExact(cityHash64(first_id, start))", "0"),
            (_, Metric::AvgTimeOnPage) => {
                ("sum(engagement_ms)", "uniqExact(cityHash64(first_id, start, path))")
            }
            (Source::Visits, Metric::UniqueVisitors) => ("uniqExact(visitor)", "0"),
            (Source::Events, Metric::ActiveVisitors) => (ACTIVE, "0"),
            (_, Metric::UniqueVisitors | Metric::ActiveVisitors) => ("uniqExact(first_id)", "0"),
            (_, _) => ("count()", "0"),
        };
        format!("toUInt64({amount}) AS amount, toUInt64({over}) AS over")
    }

    /// The column it is broken down by.
    pub(super) fn key(self, source: Source) -> Option<&'static str> {
        let column = match source {
            Source::Visits => columns::of_visit,
            Source::Events | Source::Joined => columns::of_event,
        };
        self.breakdown.map(column)
    }

    /// The rows of a source, from `FROM` on.
    pub(super) fn rows(self, source: Source, part: Part, statement: &mut Statement) -> String {
        let (events, visits) = (part.of_events(), part.of_visits());
        match source {
            Source::Events => {
                let filters = and_filters(statement, self.filters, columns::of_event);
                let events = format!("{EVENTS}{events} AND {}{filters}", self.kind());
                if self.metric == Metric::UniqueVisitors {
                    format!("FROM ({})", under_first_ids(self.key(source).as_slice(), &events))
                } else {
                    format!("FROM events WHERE {events}")
                }
            }
            Source::Visits => {
                let filters = and_filters(statement, self.filters, columns::of_visit);
                format!("FROM sessions FINAL WHERE {VISITS}{visits}{filters}")
            }
            Source::Joined => {
                let (of_event, of_visit): (Vec<_>, Vec<_>) =
                    self.filters.iter().partition(|filter| columns::stands_in_events(filter.dimension));
                let (of_event, of_visit) = (
                    and_filters(statement, of_event, columns::of_event),
                    and_filters(statement, of_visit, columns::of_visit),
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

    /// What a join must bring along, of the events and of the visits.
    fn joined_columns(self) -> (Vec<&'static str>, Vec<&'static str>) {
        let mut of_event = match self.metric {
            Metric::AvgTimeOnPage => vec!["engagement_ms", "path"],
            _ => vec![],
        };
        let mut of_visit = vec![];
        match self.breakdown {
            Some(Dimension::Url) if of_event.contains(&"path") => {}
            Some(dimension) if columns::stands_in_events(dimension) => {
                of_event.push(columns::of_event(dimension));
            }
            Some(dimension) => of_visit.push(columns::of_visit(dimension)),
            None => {}
        }
        (of_event, of_visit)
    }

    /// Which events are counted.
    fn kind(self) -> &'static str {
        match self.metric {
            Metric::AvgTimeOnPage => ENGAGEMENT,
            Metric::ActiveVisitors => DONE,
            _ => PAGE_VIEWS,
        }
    }
}

/// Distinct visitors of a few minutes. Where midnight (UTC) lies in these, whoever was there before it is so under
/// another id than after it; but every event just after midnight names the id of before.
const ACTIVE: &str = "uniqExact(if(previous != 0 \
                      AND toDate(received_at) > toDate(fromUnixTimestamp64Milli({from:Int64}, 'UTC')), \
                      previous, visitor))";

/// Which part of a range is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// All of it.
    Whole,
    /// Visits with any page views that neither began before it nor go on after it.
    Within,
    /// Visits that cross one of its edges, and the events a day around these.
    Across,
}

/// Visits that neither began before the range nor go on after it.
pub(super) const WITHIN: &str = "(start >= fromUnixTimestamp64Milli({from:Int64}) \
                                 AND ended < fromUnixTimestamp64Milli({to:Int64}))";

impl Part {
    fn of_visits(self) -> String {
        match self {
            Self::Whole => String::new(),
            Self::Within => format!(" AND {WITHIN} AND page_views > 0"),
            // The second start says nothing new, but lets all days between the edges be passed over.
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

/// Events with the visit each belongs to: the one of the same visitor that had begun and not ended.
pub(super) struct Join<'a> {
    /// What is asked of events beside `visitor` and `received_at`: columns, or what is made of them.
    pub(super) event_columns: Vec<&'a str>,
    /// Which events.
    pub(super) events: String,
    /// The same of visits, beside `first_id`, `start` and `ended`.
    pub(super) visit_columns: Vec<&'a str>,
    /// Which visits.
    pub(super) visits: String,
}

impl Join<'_> {
    /// The rows, from `FROM` on; `first_id` and `start` name the visit. Time alone tells to which one an event belongs.
    ///
    /// Joining all pairs of a visitor and keeping those in time took 0.7 s where ASOF JOIN took 1.1 s and a window
    /// function 1.8 s (4.9 M events, 1.3 M visits): a visitor has few visits a day.
    pub(super) fn rows(&self) -> String {
        let Self { event_columns, events, visit_columns, visits } = self;
        format!(
            "FROM ({}) AS e INNER JOIN (SELECT visitor AS first_id, start, ended{} FROM sessions FINAL WHERE {visits}) \
             AS v USING (first_id) WHERE received_at >= start AND received_at <= ended",
            under_first_ids(event_columns, events),
            list(visit_columns)
        )
    }
}

/// These events with `received_at`, these columns, and `first_id`: the id under which the visit began that an event may
/// belong to. It is the one of the day before where a visit goes on over midnight (UTC), `until` it ends. There are few
/// of these, so that looking for them takes a tenth of a join; one of all visits under either id took twice as long.
fn under_first_ids(columns: &[&str], events: &str) -> String {
    let made = list(columns);
    let names: Vec<_> = columns.iter().filter_map(|column| column.rsplit(" AS ").next()).collect();
    let names = list(&names);
    format!(
        "SELECT if(received_at <= until, earlier, visitor) AS first_id, received_at{names} \
         FROM (SELECT visitor, received_at{made} FROM events WHERE {events}) AS e LEFT ANY JOIN \
         (SELECT links.visitor AS visitor, nightly.visitor AS earlier, until FROM ({LINKS}) AS links INNER JOIN \
         (SELECT visitor, ended AS until FROM sessions FINAL WHERE {VISITS} AND {OVER_MIDNIGHT}) AS nightly \
         ON links.previous = nightly.visitor) AS n USING (visitor)"
    )
}

fn list(columns: &[&str]) -> String {
    columns.iter().map(|column| format!(", {column}")).collect()
}
