//! Checks of an installation: its stores, its schema and its keys. Each finding says what to do.

mod blob_store;
mod clickhouse;
mod finding;
mod master_keys;
mod postgres;
mod redis;
mod schema;
mod wait;

pub use blob_store::{check_blob_store, check_edges};
pub use clickhouse::check_clickhouse;
pub use finding::{Finding, Status};
pub use master_keys::{check_master_keys, check_pepper};
pub use postgres::check_postgres;
pub use redis::check_redis;
pub use schema::check_schema;
pub use wait::wait_for_stores;
