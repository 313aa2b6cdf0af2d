//! The steps of a funnel that visits reached, and where they went instead of the next one.

use clickhouse::Row;
use domain::analytics::{DropOffQuery, Filter, FunnelQuery, STEPS_MAX, Step};
use domain::tracking::PAGE_VIEW;
use serde::Deserialize;

use super::columns::{self, EVENTS, OVER_MIDNIGHT, PAGE_VIEWS, VISITS};
use super::join::{Join, with_first_ids};
use super::site_analytics::SiteAnalytics;
use super::statement::{Bound, Statement, VISIT_MAX};
use crate::error::Error;

/// Where the visits went that left a funnel before one of its steps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DropOff {
    /// Number of these visits.
    pub visits: u64,
    /// Number of those that viewed no further page.
    pub ended: u64,
    /// The pages that the others viewed next, with their number of visits, most first.
    pub next_pages: Vec<(String, u64)>,
}

#[derive(Row, Deserialize)]
struct ReachedRow {
    level: u8,
    visits: u64,
}

#[derive(Row, Deserialize)]
struct NextPageRow {
    /// Path of the page; empty for the visits that viewed no further page.
    page: String,
    visits: u64,
    /// Number of visits in all rows, also those that are not returned.
    total: u64,
}

impl SiteAnalytics<'_> {
    /// Counts the visits that reached each step.
    pub async fn funnel(&self, funnel: &FunnelQuery) -> Result<Vec<u64>, Error> {
        let mut statement = self.statement();
        let parts = FunnelParts::bind(&mut statement, funnel);
        statement.push(&format!(
            "SELECT level, count() AS visits FROM (SELECT {} AS level {} GROUP BY first_id, start) GROUP BY level",
            parts.level(),
            parts.rows(),
        ));
        let rows = self.rows::<ReachedRow>(statement).await?;
        let reached =
            |step: usize| rows.iter().filter(|row| usize::from(row.level) > step).map(|row| row.visits).sum();
        Ok((0..funnel.steps.len()).map(reached).collect())
    }

    /// Counts the visits that completed some steps and not the next one, by the page that they viewed after these steps.
    ///
    /// The page views are joined with these visits in a second scan: to collect those of all visits in the first one would
    /// need memory for each page view and not for each visit.
    pub async fn drop_off(&self, query: &DropOffQuery) -> Result<DropOff, Error> {
        let mut statement = self.statement();
        let parts = FunnelParts::bind(&mut statement, &query.funnel);
        // The event that completed the steps stands for a visit that viewed no page after it.
        let events = format!("{EVENTS} AND ({PAGE_VIEWS} OR {})", parts.any_event());
        let is_view = format!("{PAGE_VIEWS} AS is_view");
        statement.bind("shown", Bound::Number(i64::from(query.limit) + 1));
        statement.push(&format!(
            "SELECT page, count() AS visits, sum(count()) OVER () AS total FROM \
             (SELECT argMinIf(path, (received_at, path), is_view AND received_at > completed_at) AS page \
             FROM ({}) AS e INNER JOIN ({}) AS v USING (first_id) \
             WHERE received_at >= completed_at AND received_at <= visit_end GROUP BY first_id, start) \
             GROUP BY page ORDER BY page != '', visits DESC, page LIMIT {{shown:Int64}}",
            with_first_ids(&["path", &is_view], &events),
            parts.visits_that_left(query.completed),
        ));
        let rows = self.rows::<NextPageRow>(statement).await?;
        let mut found = DropOff { visits: rows.first().map_or(0, |row| row.total), ..DropOff::default() };
        for NextPageRow { page, visits, .. } in rows {
            if page.is_empty() {
                found.ended = visits;
            } else {
                found.next_pages.push((page, visits));
            }
        }
        found.next_pages.truncate(query.limit as usize);
        Ok(found)
    }
}

/// Maximum number of events of a visit that are searched for the one that completed the steps. No person triggers as many.
const SEARCHED_EVENTS: usize = 1_000;
/// Encodes an event as a number: its time in milliseconds, times this, plus a bit for each step that it matches.
const STEP_BITS: usize = 1 << STEPS_MAX;

/// The expressions of a funnel, whose values are bound.
struct FunnelParts {
    steps: Vec<StepParts>,
    /// The condition of the visits that may have done the first step.
    visits: String,
}

struct StepParts {
    /// The condition of the event.
    event: String,
    /// The column of the event's condition, and that of the visit's, if any.
    columns: (String, Option<String>),
    /// The condition of the joined row.
    condition: String,
}

impl FunnelParts {
    fn bind(statement: &mut Statement, funnel: &FunnelQuery) -> Self {
        statement.bind_range(funnel.range);
        let mut visits = VISITS.to_owned();
        let mut steps = Vec::new();
        for (at, step) in funnel.steps.iter().enumerate() {
            let (event, visit) = conditions(statement, step);
            if at == 0 {
                visits.push_str(&first_step_condition(step, &event, visit.as_deref()));
            }
            let condition = if visit.is_some() { format!("e{at} AND v{at}") } else { format!("e{at}") };
            let columns = (format!("{event} AS e{at}"), visit.map(|visit| format!("({visit}) AS v{at}")));
            steps.push(StepParts { event, columns, condition });
        }
        Self { steps, visits }
    }

    /// Returns the number of steps that a visit reached.
    ///
    /// `windowFunnel` takes milliseconds, not DateTime64. With `strict_once` an event that matches two steps counts for one.
    fn level(&self) -> String {
        let steps: Vec<_> = self.steps.iter().map(|step| step.condition.as_str()).collect();
        let window = VISIT_MAX.num_milliseconds();
        format!(
            "windowFunnel({window}, 'strict_once')(toUInt64(toUnixTimestamp64Milli(received_at)), {})",
            steps.join(", ")
        )
    }

    /// Returns the condition of the events that match a step.
    fn any_event(&self) -> String {
        let events: Vec<_> = self.steps.iter().map(|step| step.event.as_str()).collect();
        format!("({})", events.join(" OR "))
    }

    /// Returns SQL of the visits that completed exactly this number of steps: `first_id`, `start`, `visit_end`, and
    /// `completed_at`, the time of the event that completed them.
    ///
    /// `windowFunnel` does not return times. So the events of such a visit are taken in order, each for the next step if it matches.
    fn visits_that_left(&self, completed: usize) -> String {
        let bits = self.steps.iter().take(completed).enumerate();
        let bits: Vec<_> = bits.map(|(at, step)| format!("({}) * {}", step.condition, 1 << at)).collect();
        let bits = bits.join(" + ");
        format!(
            "SELECT first_id, start, visit_end, fromUnixTimestamp64Milli(toInt64(intDiv(arrayFold(\
             (done, event) -> if(bitTest(event, done.1), (toUInt8(done.1 + 1), event), done), step_events, \
             (toUInt8(0), toUInt64(0))).2, {STEP_BITS})), 'UTC') AS completed_at FROM \
             (SELECT first_id, start, any(ended) AS visit_end, {} AS level, groupArraySortedIf({SEARCHED_EVENTS})(\
             toUInt64(toUnixTimestamp64Milli(received_at)) * {STEP_BITS} + {bits}, {bits} > 0) AS step_events {} \
             GROUP BY first_id, start HAVING level = {completed})",
            self.level(),
            self.rows(),
        )
    }

    /// Returns SQL of the events that match a step, joined with their visits, from `FROM` on.
    fn rows(&self) -> String {
        Join {
            event_columns: self.steps.iter().map(|step| step.columns.0.as_str()).collect(),
            events: format!("{EVENTS} AND {}", self.any_event()),
            visit_columns: self.steps.iter().filter_map(|step| step.columns.1.as_deref()).collect(),
            visits: self.visits.clone(),
        }
        .rows()
    }
}

/// Returns a condition of the visits that may contain the first step. It pays off (0.7 s instead of 1.2 s for 1.2 million
/// visits) unless any page view matches, which almost all visits have. A visit over midnight may have done the step under
/// another id.
fn first_step_condition(first: &Step, event: &str, visit: Option<&str>) -> String {
    let mut condition = visit.map(|visit| format!(" AND {visit}")).unwrap_or_default();
    if first.event != PAGE_VIEW || !first.filters.is_empty() {
        condition.push_str(&format!(
            " AND ({OVER_MIDNIGHT} OR visitor IN (SELECT visitor FROM events WHERE {EVENTS} AND {event}))"
        ));
    }
    condition
}

/// Returns the conditions of the event and, if any, of its visit.
fn conditions(statement: &mut Statement, step: &Step) -> (String, Option<String>) {
    let (of_event, of_visit): (Vec<&Filter>, Vec<_>) =
        step.filters.iter().partition(|filter| columns::is_in_events(filter.dimension));
    let mut event = statement.equals("name", &step.event);
    event.push_str(&columns::and_filters(statement, of_event, columns::event_column));
    let visit = columns::and_filters(statement, of_visit, columns::session_column);
    (format!("({event})"), visit.strip_prefix(" AND ").map(str::to_owned))
}
