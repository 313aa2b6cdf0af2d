//! Private Postgres, Redis and ClickHouse for local runs and tests: installed or fetched programs, started on loopback,
//! and stopped together with the process that started them, even after kill -9.

mod account;
pub mod child;
pub mod clickhouse;
pub mod clickhouse_http;
mod data;
pub mod dirs;
pub mod knot;
pub mod pebble;
pub mod port;
pub mod postgres;
pub mod programs;
pub mod progress;
pub mod redis;
pub mod s3;
mod secret;
pub mod supervisor;
pub mod test;
mod wait_for_exit;

pub use data::Data;
