//! Connections to Postgres: pools, transactions and migrations.

use std::time::Duration;

use serde::Deserialize;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};

use crate::Error;

/// A connection pool. Cheap to clone.
pub type Db = sqlx::PgPool;
/// A connection, inside or outside a transaction.
pub type Conn = sqlx::PgConnection;
/// A transaction that owns its connection. Rolled back on drop unless [`commit`] is called.
pub type Tx = TxOn<'static>;
/// A transaction on a borrowed connection.
pub type TxOn<'conn> = sqlx::Transaction<'conn, sqlx::Postgres>;

/// Section `[store]` of a service's configuration.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// `postgres://user:password@host:port/database`.
    pub url: String,
    /// Maximum open connections of this service.
    pub max_connections: u32,
}

/// Returns a pool that connects on first use, so that a service can start while Postgres is down.
pub fn connect(config: &Config) -> Result<Db, Error> {
    Ok(pool_options(config).connect_lazy_with(connect_options(config)?))
}

/// Like [`connect`], but a statement fails when it waits for a lock longer than `lock_timeout` or runs longer than
/// twice that time. So requests that wait for a lock can't occupy all connections.
pub fn connect_with_lock_timeout(config: &Config, lock_timeout: Duration) -> Result<Db, Error> {
    let (lock, statement) = (lock_timeout.as_millis(), 2 * lock_timeout.as_millis());
    // A dropped connection must also end its statement on the server.
    let set = format!(
        "set lock_timeout = {lock}; set statement_timeout = {statement}; set client_connection_check_interval = '1s'"
    );
    let pool = pool_options(config).after_connect(move |conn, _| {
        let set = set.clone();
        Box::pin(async move { sqlx::raw_sql(sqlx::AssertSqlSafe(set)).execute(conn).await.map(drop) })
    });
    Ok(pool.connect_lazy_with(connect_options(config)?))
}

/// Connection options. JIT compilation is off: no statement here runs long enough to benefit, and when the planner
/// overestimates a row count, compiling costs thirty times the execution.
fn connect_options(config: &Config) -> Result<PgConnectOptions, Error> {
    Ok(config.url.parse::<PgConnectOptions>()?.options([("jit", "off")]))
}

fn pool_options(config: &Config) -> PgPoolOptions {
    PgPoolOptions::new().max_connections(config.max_connections).acquire_timeout(Duration::from_secs(5))
}

/// A separate pool for a few statements that run constantly over tables of changing size. Each statement gets one
/// generic plan that uses indexes only: a plan made for an empty table would otherwise keep scanning the full one. Idle
/// connections are not tested before use; the caller must retry.
pub fn connect_generic_plans(config: &Config, max_connections: u32) -> Result<Db, Error> {
    let plan_options = [("plan_cache_mode", "force_generic_plan"), ("enable_seqscan", "off")];
    let pool = PgPoolOptions::new()
        .max_connections(max_connections)
        .acquire_timeout(Duration::from_secs(5))
        .test_before_acquire(false)
        .connect_lazy_with(connect_options(config)?.options(plan_options));
    Ok(pool)
}

/// Applies all pending migrations. Safe to run from several processes at once.
///
/// # Errors
///
/// Postgres is unavailable, or the file of an applied migration was edited.
pub async fn migrate(db: &Db) -> Result<(), Error> {
    sqlx::migrate!("../../migrations/postgres").run(db).await?;
    Ok(())
}

/// Checks that Postgres answers.
pub async fn ping(db: &Db) -> Result<(), Error> {
    sqlx::query("select 1").execute(db).await?;
    Ok(())
}

/// Takes a connection from the pool; dropping it returns it.
pub async fn acquire(db: &Db) -> Result<sqlx::pool::PoolConnection<sqlx::Postgres>, Error> {
    Ok(db.acquire().await?)
}

/// Takes a connection out of the pool; dropping it closes it. For statements that may be cancelled halfway.
pub async fn acquire_detached(db: &Db) -> Result<Conn, Error> {
    Ok(db.acquire().await?.detach())
}

/// Begins a transaction on a connection of the pool.
pub async fn begin(db: &Db) -> Result<Tx, Error> {
    Ok(db.begin().await?)
}

/// Begins a transaction on a [`crate::CancelSafeConn`]. Postgres, which may not notice a lost client, ends the
/// transaction and its locks when it is idle for `idle_timeout`.
pub async fn begin_with_timeout(conn: &mut Conn, idle_timeout: Duration) -> Result<TxOn<'_>, Error> {
    let begin =
        format!("begin; set local idle_in_transaction_session_timeout = {}", idle_timeout.as_millis());
    Ok(sqlx::Connection::begin_with(conn, sqlx::AssertSqlSafe(begin)).await?)
}

/// Commits a transaction.
///
/// # Errors
///
/// The commit failed, or its reply was lost; then the outcome is unknown.
pub async fn commit(tx: TxOn<'_>) -> Result<(), Error> {
    Ok(tx.commit().await?)
}

/// Rolls a transaction back at once. Dropping it does the same a little later, so its locks would be held longer.
/// Nothing is committed even if this returns an error.
pub async fn rollback(tx: TxOn<'_>) -> Result<(), Error> {
    Ok(tx.rollback().await?)
}

/// Runs one administrative statement unchecked. For sandboxes, which create and drop databases.
pub async fn execute_raw(db: &Db, statement: &str) -> Result<(), Error> {
    sqlx::raw_sql(sqlx::AssertSqlSafe(statement)).execute(db).await?;
    Ok(())
}
