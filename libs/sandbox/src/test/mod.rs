//! Real backends for tests: begun when a test first asks, one of each per test process, gone with it. Every
//! test gets a part of its own, so that tests run side by side: a Postgres database copied from a migrated
//! template, a Redis prefix, a ClickHouse database.
//!
//! The backends are held by supervisors, processes of the `sandbox` program: a test process that is killed
//! leaves nothing behind. What can't be had fails the test that asked, by panic.

mod backends;
mod clickhouse;
mod database;
mod folder;
mod killable;
mod program;
mod redis;
mod wait;

pub use clickhouse::{TestClickHouse, clickhouse};
pub use database::{TestDatabase, database};
pub use folder::{TestFolder, folder};
pub use killable::KillableRedis;
pub use redis::{TestRedis, redis};
pub use wait::{eventually, until, with_timeout};
