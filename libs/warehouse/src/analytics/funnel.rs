//! How far visits went through a funnel.

use clickhouse::Row;
use domain::analytics::{Filter, Funnel, Step};
use domain::tracking::PAGE_VIEW;
use serde::Deserialize;

use super::SiteAnalytics;
use super::columns::{self, EVENTS, OVER_MIDNIGHT, VISITS};
use super::source::Join;
use super::statement::Statement;
use crate::Error;

#[derive(Row, Deserialize)]
struct ReachedRow {
    level: u8,
    visits: u64,
}

impl SiteAnalytics<'_> {
    /// How many visits reached each step.
    ///
    /// # Errors
    /// As [`SiteAnalytics::total`].
    pub async fn funnel(&self, funnel: &Funnel) -> Result<Vec<u64>, Error> {
        let mut statement = self.statement();
        statement.bind_range(funnel.range);
        let (mut of_event, mut of_visit, mut any, mut steps) = (vec![], vec![], vec![], vec![]);
        let mut visits = VISITS.to_owned();
        for (at, step) in funnel.steps.iter().enumerate() {
            let (event, visit) = conditions(&mut statement, step);
            if at == 0 {
                visits.push_str(&began(step, &event, visit.as_deref()));
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
        // Milliseconds, because it takes no DateTime64; a window of more than any visit lasts; and an event that
        // fits two steps does one of them.
        statement.push("SELECT level, count() AS visits FROM (SELECT windowFunnel(90000000, 'strict_once')(");
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

/// Of which visits alone there is anything to count: of those in which the first step may have been done. Looking for
/// these pays (0.7 s instead of 1.2 s, of 1.2 million visits) unless any page view will do, as almost all have one. A visit
/// over midnight may have done it under another id.
fn began(first: &Step, event: &str, visit: Option<&str>) -> String {
    let mut began = visit.map(|visit| format!(" AND {visit}")).unwrap_or_default();
    if first.event != PAGE_VIEW || !first.filters.is_empty() {
        began.push_str(&format!(
            " AND ({OVER_MIDNIGHT} OR visitor IN (SELECT visitor FROM events WHERE {EVENTS} AND {event}))"
        ));
    }
    began
}

/// What must hold of an event, and of its visit, if anything.
fn conditions(statement: &mut Statement, step: &Step) -> (String, Option<String>) {
    let (of_event, of_visit): (Vec<&Filter>, Vec<_>) =
        step.filters.iter().partition(|filter| columns::stands_in_events(filter.dimension));
    let mut event = statement.equals("name", &step.event);
    event.push_str(&columns::and_filters(statement, of_event, columns::of_event));
    let visit = columns::and_filters(statement, of_visit, columns::of_visit);
    (format!("({event})"), visit.strip_prefix(" AND ").map(str::to_owned))
}
