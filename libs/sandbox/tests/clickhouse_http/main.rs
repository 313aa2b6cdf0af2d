//! The front, asked by the `clickhouse` crate and, where the wire itself matters, by plain HTTP.
#![expect(clippy::unwrap_used, reason = "a test's own plumbing may fail loudly")]

mod client;
mod formats;
mod inserts;
mod isolation;
mod killed;
mod responses;
mod rows;
