//! Connections to Postgres: pools, statements with a deadline, transactions and migrations.

mod admin;
mod cancel_safe;
mod clock;
mod config;
mod conn;
mod executor;
mod last_timeout;
mod pool;
mod transaction;

pub use admin::{execute_raw, migrate, ping};
pub use cancel_safe::{CancelSafeConn, acquire_cancel_safe};
pub use clock::read_clock;
pub use config::Config;
pub use conn::{Conn, PooledConn, acquire, acquire_detached};
pub(crate) use pool::connect_kept_open;
pub use pool::{Db, connect, connect_generic_plans, connect_with_lock_timeout};
pub use transaction::{Tx, TxOn, begin, begin_with_timeout, commit, rollback};
