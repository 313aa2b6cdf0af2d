//! The HTTP interface over libchdb, used by the `clickhouse` crate and, for details of the protocol, by plain HTTP.
#![expect(clippy::unwrap_used, reason = "a test's own plumbing may fail loudly")]

mod client;
mod formats;
mod inserts;
mod isolation;
mod killed;
mod responses;
mod rows;
