//! How far visits went through a funnel.

use clickhouse::Row;
use domain::analytics::{Filter, Funnel, Step};
use serde::Deserialize;

use super::Questions;
use super::columns::{self, EVENTS, VISITS};
use super::source::Join;
use super::statement::Statement;
use crate::Error;

#[derive(Row, Deserialize)]
struct ReachedRow {
    level: u8,
    visits: u64,
}

impl Questions<'_> {
    /// How many visits reached each step.
    ///
    /// # Errors
    /// As [`Questions::total`].
    pub async fn funnel(&self, funnel: &Funnel) -> Result<Vec<u64>, Error> {
        let mut statement = self.statement();
        statement.bind_range(funnel.range);
        let (mut of_event, mut of_visit, mut any, mut steps) = (vec![], vec![], vec![], vec![]);
        for (at, step) in funnel.steps.iter().enumerate() {
            let (event, visit) = conditions(&mut statement, step);
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
            visits: VISITS.to_owned(),
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

/// What must hold of an event, and of its visit, if anything.
fn conditions(statement: &mut Statement, step: &Step) -> (String, Option<String>) {
    let (of_event, of_visit): (Vec<&Filter>, Vec<_>) =
        step.filters.iter().partition(|filter| columns::stands_in_events(filter.dimension));
    let mut event = statement.equals("name", &step.event);
    event.push_str(&columns::and_filters(statement, of_event, columns::of_event));
    let visit = columns::and_filters(statement, of_visit, columns::of_visit);
    (format!("({event})"), visit.strip_prefix(" AND ").map(str::to_owned))
}
