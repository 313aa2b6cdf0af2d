//! Queries about one site's traffic. `domain::analytics` validates a query; these modules turn it into SQL and return
//! sums.
//!
//! SQL text is never made of callers' values: ClickHouse binds them all. Each statement runs under limits of time,
//! memory and rows, so that a query that is too large fails with a clear error.

pub(crate) mod breakdown;
mod columns;
mod funnel;
mod join;
mod retention;
mod series;
pub(crate) mod site_analytics;
mod source;
mod statement;
mod total;
pub(crate) mod totals;
pub(crate) mod visits;
