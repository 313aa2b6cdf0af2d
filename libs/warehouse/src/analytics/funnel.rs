//! The steps of a funnel that visits reached.

use clickhouse::Row;
use domain::analytics::{Filter, FunnelQuery, Step};
use domain::tracking::PAGE_VIEW;
use serde::Deserialize;

use super::columns::{self, EVENTS, OVER_MIDNIGHT, VISITS};
use super::join::Join;
use super::site_analytics::SiteAnalytics;
use super::statement::{Statement, VISIT_MAX};
use crate::error::Error;

#[derive(Row, Deserialize)]
struct ReachedRow {
    level: u8,
    visits: u64,
}

impl SiteAnalytics<'_> {
    /// Counts the visits that reached each step.
    pub async fn funnel(&self, funnel: &FunnelQuery) -> Result<Vec<u64>, Error> {
        let mut statement = self.statement();
        statement.bind_range(funnel.range);
        let (mut of_event, mut of_visit, mut any, mut steps) = (vec![], vec![], vec![], vec![]);
        let mut visits = VISITS.to_owned();
        for (at, step) in funnel.steps.iter().enumerate() {
            let (event, visit) = conditions(&mut statement, step);
            if at == 0 {
                visits.push_str(&first_step_condition(step, &event, visit.as_deref()));
            }
            of_event.push(format!("{event} AS e{at}"));
            any.push(event);
            if let Some(visit) = visit {
                of_visit.push(format!("({visit}) AS v{at}"));
                steps.push(format!("e{at} AND v{at}"));
            } else {
                steps.push(format!("e{at}"));
            }
        }
        let join = Join {
            event_columns: of_event.iter().map(String::as_str).collect(),
            events: format!("{EVENTS} AND ({})", any.join(" OR ")),
            visit_columns: of_visit.iter().map(String::as_str).collect(),
            visits,
        };
        // `windowFunnel` takes milliseconds, not DateTime64. With `strict_once` an event that matches two steps counts for one.
        let window = VISIT_MAX.num_milliseconds();
        statement.push(&format!(
            "SELECT level, count() AS visits FROM (SELECT windowFunnel({window}, 'strict_once')("
        ));
        statement
            .push("toUInt64(toUnixTimestamp64Milli(received_at)), ")
            .push(&steps.join(", "))
            .push(") AS level ");
        statement.push(&join.rows()).push(" GROUP BY first_id, start) GROUP BY level");
        let rows = self.rows::<ReachedRow>(statement).await?;
        let reached =
            |step: usize| rows.iter().filter(|row| usize::from(row.level) > step).map(|row| row.visits).sum();
        Ok((0..funnel.steps.len()).map(reached).collect())
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
