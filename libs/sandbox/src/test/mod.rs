//! Real backends for tests. Each test process starts a backend on first use and stops it at its end. Tests run concurrently
//! because each has its own Postgres database, copied from a migrated template, its own Redis prefix and its own
//! ClickHouse database.
//!
//! Supervisors, processes of the `sandbox` program, run the backends, so a killed test process leaves nothing behind. If a
//! backend can't be started, the test panics.

mod backends;
mod clickhouse;
mod database;
#[expect(clippy::expect_used, clippy::panic, reason = "for tests alone")]
mod dns;
mod fixtures;
mod folder;
mod killable;
mod killable_postgres;
mod program;
mod redis;
#[expect(clippy::indexing_slicing, reason = "for tests alone")]
mod redis_group;
mod silent_proxy;
mod tls;
mod wait;

pub use clickhouse::{BackedUpClickHouse, TestClickHouse, clickhouse, clickhouse_with_backups};
pub use database::{TestDatabase, database};
pub use dns::{DnsBehavior, DnsServer};
pub use fixtures::{TestStore, automation, run_of, settings_for, trial};
pub use folder::{TestFolder, folder};
pub use killable::KillableRedis;
pub use killable_postgres::KillablePostgres;
pub use redis::{TestRedis, redis};
pub use redis_group::RedisGroup;
pub use silent_proxy::SilentProxy;
pub use tls::{TestAuthority, TlsFront};
pub use wait::{eventually, until, with_timeout};
