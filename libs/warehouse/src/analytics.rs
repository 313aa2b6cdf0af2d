//! Questions about one site's visits: what `domain::analytics` makes of words becomes a statement here, and what
//! comes back are sums.
//!
//! A statement's text is made of nothing but what stands in this room; every value is bound by the server. Each
//! runs under limits of time, memory and rows, so that a question that is too large ends with a clear error.

mod breakdown;
mod columns;
mod funnel;
mod retention;
mod series;
mod source;
mod statement;
mod total;
mod visits;

use std::time::{Duration, Instant};

use clickhouse::Row;
use clickhouse::query::Query;
use domain::analytics::Sums;
use serde::Deserialize;
use uuid::Uuid;

pub use visits::{ViewedPage, VisitList, VisitSummary};

use crate::{Error, Warehouse, question, within};
use statement::{Bound, Statement};

/// How much longer than ClickHouse may take its answer is waited for.
const GRACE: Duration = Duration::from_secs(2);
/// With less time left there is no use in asking; to ClickHouse none at all would mean any.
const LEAST_TIME: Duration = Duration::from_millis(1);

/// What a question may take.
#[derive(Debug, Clone, Copy)]
pub struct QueryLimits {
    /// How long it may take in all, however many statements it needs.
    pub timeout: Duration,
    /// How much memory each statement may use, in bytes.
    pub max_memory_bytes: u64,
    /// How many rows each statement may read.
    pub max_rows: u64,
}

/// Answers a question about one site.
#[derive(Clone)]
pub struct SiteAnalytics<'a> {
    warehouse: &'a Warehouse,
    limits: QueryLimits,
    deadline: Instant,
    site: Uuid,
}

impl Warehouse {
    /// What can be asked about a site, within `limits`: all that is asked of this is one question, whose time begins now.
    pub fn analytics(&self, site: Uuid, limits: QueryLimits) -> SiteAnalytics<'_> {
        SiteAnalytics { warehouse: self, limits, deadline: Instant::now() + limits.timeout, site }
    }
}

#[derive(Row, Deserialize)]
struct SumsRow {
    amount: u64,
    over: u64,
}

impl From<SumsRow> for Sums {
    fn from(row: SumsRow) -> Self {
        Self { amount: row.amount, over: row.over }
    }
}

impl SiteAnalytics<'_> {
    /// A statement about nothing but this site yet.
    fn statement(&self) -> Statement {
        let mut statement = Statement::default();
        statement.bind("site", Bound::Text(self.site.to_string()));
        statement
    }

    fn query(&self, statement: Statement, time: Duration) -> Query {
        let query = question(self.warehouse.client.query_raw(statement.sql()), time)
            .with_setting("max_memory_usage", self.limits.max_memory_bytes.to_string())
            .with_setting("max_rows_to_read", self.limits.max_rows.to_string())
            // A visit's versions all lie in the month it began in.
            .with_setting("do_not_merge_across_partitions_select_final", "1");
        statement.into_values().fold(query, |query, (name, value)| match value {
            Bound::Text(text) => query.param(&name, text),
            Bound::Number(number) => query.param(&name, number),
            Bound::Numbers(numbers) => query.param(&name, numbers),
            Bound::Ids(ids) => query.param(&name, ids),
        })
    }

    /// All rows, or an error once the time is over on our side as well.
    async fn rows<R>(&self, statement: Statement) -> Result<Vec<R>, Error>
    where
        R: clickhouse::RowOwned + clickhouse::RowRead,
    {
        let time = left(self.deadline, Instant::now())?;
        within(time + GRACE, self.query(statement, time).fetch_all::<R>()).await
    }
}

/// The time that is left until `deadline`.
fn left(deadline: Instant, now: Instant) -> Result<Duration, Error> {
    let time = deadline.saturating_duration_since(now);
    if time < LEAST_TIME { Err(clickhouse::error::Error::TimedOut.into()) } else { Ok(time) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ExceededLimit;

    #[test]
    fn a_statement_has_the_time_that_those_before_it_have_left() {
        let (begin, second) = (Instant::now(), Duration::from_secs(1));
        let deadline = begin + 10 * second;
        assert_eq!(left(deadline, begin).unwrap(), 10 * second);
        assert_eq!(left(deadline, begin + 7 * second).unwrap(), 3 * second);
        for late in [begin + 10 * second, begin + 11 * second] {
            assert_eq!(left(deadline, late).unwrap_err().exceeded_limit(), Some(ExceededLimit::TimeOrMemory));
        }
    }
}
