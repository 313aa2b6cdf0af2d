//! Connections to Postgres: pools, transactions and migrations.

use std::time::Duration;

use serde::Deserialize;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};

use crate::Error;

/// A pool of connections. Cheap to clone.
pub type Db = sqlx::PgPool;
/// One connection, in a transaction or not.
pub type Conn = sqlx::PgConnection;
/// A transaction; dropped without [`commit`], it is rolled back.
pub type Tx = TxOn<'static>;
/// The same on a connection of the caller's.
pub type TxOn<'conn> = sqlx::Transaction<'conn, sqlx::Postgres>;

/// Section `[store]` of a service's configuration.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// `postgres://user:password@host:port/database`.
    pub url: String,
    /// Most connections this service holds open.
    pub max_connections: u32,
}

/// A pool that connects when first used: a service starts while Postgres is away.
pub fn connect(config: &Config) -> Result<Db, Error> {
    Ok(options(config).connect_lazy_with(server(config)?))
}

/// As [`connect`], for statements that fail when somebody else holds a lock for longer than `wait_within`, or when they
/// take twice as long for another reason: visitors don't take all connections to wait there.
pub fn connect_with_lock_timeout(config: &Config, wait_within: Duration) -> Result<Db, Error> {
    let (lock, statement) = (wait_within.as_millis(), 2 * wait_within.as_millis());
    // Who hangs up takes the connection along: what was asked on it must not go on without anybody.
    let set = format!(
        "set lock_timeout = {lock}; set statement_timeout = {statement}; set client_connection_check_interval = '1s'"
    );
    let impatient = options(config).after_connect(move |conn, _| {
        let set = set.clone();
        Box::pin(async move { sqlx::raw_sql(sqlx::AssertSqlSafe(set)).execute(conn).await.map(drop) })
    });
    Ok(impatient.connect_lazy_with(server(config)?))
}

/// No statement here runs for so long that machine code for it would pay; made for a plan of wrongly estimated size, it
/// costs thirty times what the statement does.
fn server(config: &Config) -> Result<PgConnectOptions, Error> {
    Ok(config.url.parse::<PgConnectOptions>()?.options([("jit", "off")]))
}

fn options(config: &Config) -> PgPoolOptions {
    PgPoolOptions::new().max_connections(config.max_connections).acquire_timeout(Duration::from_secs(5))
}

/// A pool of its own for a few statements that run all the time over tables that come and go: each is planned once, and
/// never to read a whole table, as what was planned over an empty one would go on to do over a full one. An idle
/// connection is not tried before it is used: the caller tries again.
pub fn connect_generic_plans(config: &Config, max_connections: u32) -> Result<Db, Error> {
    let steady = [("plan_cache_mode", "force_generic_plan"), ("enable_seqscan", "off")];
    let pool = PgPoolOptions::new()
        .max_connections(max_connections)
        .acquire_timeout(Duration::from_secs(5))
        .test_before_acquire(false)
        .connect_lazy_with(server(config)?.options(steady));
    Ok(pool)
}

/// Brings the schema up to date. Several processes may do so at once.
///
/// # Errors
/// The database is away, or a migration that was already applied has been edited.
pub async fn migrate(db: &Db) -> Result<(), Error> {
    sqlx::migrate!("../../migrations/postgres").run(db).await?;
    Ok(())
}

/// Whether the database answers.
pub async fn ping(db: &Db) -> Result<(), Error> {
    sqlx::query("select 1").execute(db).await?;
    Ok(())
}

/// A connection of the pool, given back when dropped.
pub async fn acquire(db: &Db) -> Result<sqlx::pool::PoolConnection<sqlx::Postgres>, Error> {
    Ok(db.acquire().await?)
}

/// A connection of its own, closed when dropped: for what may be broken off in the middle.
pub async fn acquire_detached(db: &Db) -> Result<Conn, Error> {
    Ok(db.acquire().await?.detach())
}

/// Begins a transaction.
pub async fn begin(db: &Db) -> Result<Tx, Error> {
    Ok(db.begin().await?)
}

/// Begins a transaction on a connection that is closed should it fall silent ([`crate::CancelSafeConn`]). Postgres, which may not hear of
/// that, ends the transaction when it was told nothing for `patience`, and its locks with it.
pub async fn begin_with_timeout(conn: &mut Conn, patience: Duration) -> Result<TxOn<'_>, Error> {
    let begin = format!("begin; set local idle_in_transaction_session_timeout = {}", patience.as_millis());
    Ok(sqlx::Connection::begin_with(conn, sqlx::AssertSqlSafe(begin)).await?)
}

/// Ends a transaction; only now has it happened.
///
/// # Errors
/// It could not be committed, or the answer was lost: then whether it has happened is not known.
pub async fn commit(tx: TxOn<'_>) -> Result<(), Error> {
    Ok(tx.commit().await?)
}

/// Ends a transaction of which nothing shall have happened. Merely dropped it ends a little later, and its locks with it.
/// Nothing is committed even if this returns an error.
pub async fn rollback(tx: TxOn<'_>) -> Result<(), Error> {
    Ok(tx.rollback().await?)
}

/// Runs one administrative statement as it stands. For sandboxes, which make and drop databases.
pub async fn execute_raw(db: &Db, statement: &str) -> Result<(), Error> {
    sqlx::raw_sql(sqlx::AssertSqlSafe(statement)).execute(db).await?;
    Ok(())
}
