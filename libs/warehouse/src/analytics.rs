//! Queries about one site's traffic. `domain::analytics` validates a query; these modules turn it into SQL and return
//! sums.
//!
//! SQL text is never made of callers' values: ClickHouse binds them all. Each statement runs under limits of time,
//! memory and rows, so that a query that is too large fails with a clear error.

mod aggregate;
mod columns;
pub(crate) mod funnel;
mod join;
pub(crate) mod report;
mod retention;
pub(crate) mod site_analytics;
mod source;
mod statement;
pub(crate) mod sums;
mod top_values;
pub(crate) mod visits;
