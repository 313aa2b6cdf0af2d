//! The front, asked by the `clickhouse` crate and, where the wire itself matters, by plain HTTP.

mod answers;
mod asking;
mod formats;
mod inserts;
mod isolation;
mod killed;
mod rows;
