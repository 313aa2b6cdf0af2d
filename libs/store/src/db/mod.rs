//! Connections to Postgres: pools, statements with a deadline, transactions and migrations.

mod admin;
mod cancel_safe;
mod clock;
mod config;
mod conn;
mod executor;
mod last_timeout;
mod migrations;
mod open_pools;
mod pool;
mod schema;
mod server_status;
mod standby;
mod transaction;

pub use admin::{execute_raw, migrate, ping};
pub use cancel_safe::{CancelSafeConn, acquire_cancel_safe};
pub use clock::{current_time, read_clock};
pub use config::Config;
pub use conn::{Conn, PooledConn, acquire, acquire_detached};
pub use migrations::{Migration, MigrationLock, MigrationState, list_migrations, try_lock_migrations};
pub(crate) use open_pools::{connections_by_state, max_connections};
pub(crate) use pool::connect_kept_open;
pub use pool::{Db, connect, connect_generic_plans, connect_with_lock_timeout};
pub use schema::{SCHEMA_RELEASE, SchemaMismatch, SchemaRelease, find_schema_mismatch, list_schema_releases};
pub use server_status::{ServerStatus, read_server_status, try_connect};
pub use standby::ExportDb;
pub use transaction::{Tx, TxOn, begin, begin_snapshot, begin_with_timeout, commit, rollback};
