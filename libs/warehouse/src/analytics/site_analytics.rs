//! [`SiteAnalytics`], which runs the statements of one query within its limits.

use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use clickhouse::query::Query;
use uuid::Uuid;

use super::statement::{Bound, Statement, day_literal, time_literal};
use crate::client::{Warehouse, read_only, with_timeout};
use crate::error::Error;

/// How much longer than the server's limit the client waits, so that the server reports the error.
const GRACE: Duration = Duration::from_secs(2);
/// With less time left no statement is sent. To ClickHouse, zero would mean no limit.
const MIN_TIMEOUT: Duration = Duration::from_millis(1);

/// The limits of one query.
#[derive(Debug, Clone, Copy)]
pub struct QueryLimits {
    /// Time limit of all statements of the query together.
    pub timeout: Duration,
    /// Memory limit of each statement.
    pub max_memory_bytes: u64,
    /// Maximum number of rows that each statement reads.
    pub max_rows: u64,
}

/// One query about one site.
#[derive(Clone)]
pub struct SiteAnalytics<'a> {
    pub(super) warehouse: &'a Warehouse,
    limits: QueryLimits,
    deadline: Instant,
    site: Uuid,
    /// When the query is asked. It decides which days are settled.
    pub(super) now: DateTime<Utc>,
}

impl Warehouse {
    /// Starts a query about a site. Its timeout begins now and covers all calls on the returned value.
    pub fn analytics(&self, site: Uuid, limits: QueryLimits, now: DateTime<Utc>) -> SiteAnalytics<'_> {
        SiteAnalytics { warehouse: self, limits, deadline: Instant::now() + limits.timeout, site, now }
    }
}

impl SiteAnalytics<'_> {
    /// Returns an empty statement with the site bound.
    pub(super) fn statement(&self) -> Statement {
        let mut statement = Statement::default();
        statement.bind("site", Bound::Text(self.site.to_string()));
        statement
    }

    fn query(&self, statement: Statement, timeout: Duration) -> Query {
        let query = read_only(self.warehouse.client.query_raw(statement.sql()), timeout)
            .with_setting("max_memory_usage", self.limits.max_memory_bytes.to_string())
            .with_setting("max_rows_to_read", self.limits.max_rows.to_string())
            // All versions of a visit are in the partition of the month it began in.
            .with_setting("do_not_merge_across_partitions_select_final", "1");
        statement.into_values().fold(query, |query, (name, value)| match value {
            Bound::Text(text) => query.param(&name, text),
            Bound::Texts(texts) => query.param(&name, texts),
            Bound::Number(number) => query.param(&name, number),
            Bound::Numbers(numbers) => query.param(&name, numbers),
            Bound::Ids(ids) => query.param(&name, ids),
            Bound::Time(time) => query.param(&name, time_literal(time)),
            Bound::Day(day) => query.param(&name, day_literal(day)),
        })
    }

    /// Fetches all rows, within the rest of the query's time.
    pub(super) async fn rows<R>(&self, statement: Statement) -> Result<Vec<R>, Error>
    where
        R: clickhouse::RowOwned + clickhouse::RowRead,
    {
        self.rows_with(statement, &[]).await
    }

    /// As `rows`, with further settings of ClickHouse.
    pub(super) async fn rows_with<R>(
        &self,
        statement: Statement,
        settings: &[(&str, &str)],
    ) -> Result<Vec<R>, Error>
    where
        R: clickhouse::RowOwned + clickhouse::RowRead,
    {
        let timeout = remaining(self.deadline, Instant::now())?;
        let query = self.query(statement, timeout);
        let query = settings.iter().fold(query, |query, (name, value)| query.with_setting(*name, *value));
        with_timeout(timeout + GRACE, query.fetch_all::<R>()).await
    }
}

fn remaining(deadline: Instant, now: Instant) -> Result<Duration, Error> {
    let time = deadline.saturating_duration_since(now);
    if time < MIN_TIMEOUT { Err(clickhouse::error::Error::TimedOut.into()) } else { Ok(time) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ExceededLimit;

    #[test]
    fn a_statement_gets_the_time_that_earlier_ones_left() {
        let (start, second) = (Instant::now(), Duration::from_secs(1));
        let deadline = start + 10 * second;
        assert_eq!(remaining(deadline, start).unwrap(), 10 * second);
        assert_eq!(remaining(deadline, start + 7 * second).unwrap(), 3 * second);
        for late in [start + 10 * second, start + 11 * second] {
            let error = remaining(deadline, late).unwrap_err();
            assert_eq!(error.exceeded_limit(), Some(ExceededLimit::TimeOrMemory));
        }
    }
}
