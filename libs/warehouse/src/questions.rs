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

use std::time::Duration;

use clickhouse::Row;
use clickhouse::query::Query;
use domain::analytics::Sums;
use serde::Deserialize;
use uuid::Uuid;

pub use visits::{PageSeen, VisitSeen, VisitsSeen};

use crate::{Error, Warehouse, within};
use statement::{Bound, Statement};

/// What one statement may take.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// How long it may run.
    pub time: Duration,
    /// How much memory it may use, in bytes.
    pub memory_bytes: u64,
    /// How many rows it may read.
    pub rows: u64,
}

/// Answers the questions about one site.
#[derive(Clone)]
pub struct Questions<'a> {
    warehouse: &'a Warehouse,
    limits: Limits,
    site: Uuid,
}

impl Warehouse {
    /// The questions about a site, each of their statements within `limits`.
    pub fn questions(&self, site: Uuid, limits: Limits) -> Questions<'_> {
        Questions { warehouse: self, limits, site }
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

impl Questions<'_> {
    /// A statement about nothing but this site yet.
    fn statement(&self) -> Statement {
        let mut statement = Statement::default();
        statement.bind("site", Bound::Text(self.site.to_string()));
        statement
    }

    fn query(&self, statement: Statement) -> Query {
        let Limits { time, memory_bytes, rows } = self.limits;
        let query = self
            .warehouse
            .client
            .query_raw(statement.sql())
            .with_setting("max_execution_time", time.as_secs_f64().to_string())
            .with_setting("max_memory_usage", memory_bytes.to_string())
            .with_setting("max_rows_to_read", rows.to_string())
            // Nobody waits for the answer any more.
            .with_setting("cancel_http_readonly_queries_on_client_close", "1")
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
        within(self.limits.time + Duration::from_secs(2), self.query(statement).fetch_all::<R>()).await
    }
}
