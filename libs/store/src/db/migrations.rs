//! The migrations of this program beside those that a database has, and the lock of the process that applies them.

use std::collections::BTreeMap;
use std::time::Duration;

use sqlx::migrate::Migrator;

use super::conn::{Conn, PooledConn, acquire_detached};
use super::pool::Db;
use crate::Error;

pub(super) static MIGRATOR: Migrator = sqlx::migrate!("../../migrations/postgres");

/// How long the statement that takes the lock may run. It never waits.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// A migration of this program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Migration {
    pub version: i64,
    /// Its file's name without `.sql`.
    pub name: String,
    pub sql: &'static str,
}

/// The migrations of this program, compared with a database.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MigrationState {
    /// The versions that the database has, ascending.
    pub applied: Vec<i64>,
    /// Those that it lacks, in order.
    pub pending: Vec<Migration>,
    /// Versions that the database has and this program does not know: a newer release applied them.
    pub unknown: Vec<i64>,
    /// Names of applied migrations with another text than this program's.
    pub edited: Vec<String>,
}

/// Compares the migrations of this program with those of the database, which may be empty.
pub async fn list_migrations(conn: &mut Conn) -> Result<MigrationState, Error> {
    let has_table: bool = sqlx::query_scalar("select to_regclass('_sqlx_migrations') is not null")
        .fetch_one(&mut *conn)
        .await?;
    let applied: Vec<(i64, Vec<u8>)> = if has_table {
        sqlx::query_as("select version, checksum from _sqlx_migrations where success order by version")
            .fetch_all(conn)
            .await?
    } else {
        Vec::new()
    };
    let mut unknown: BTreeMap<i64, Vec<u8>> = applied.into_iter().collect();
    let mut state =
        MigrationState { applied: unknown.keys().copied().collect(), ..MigrationState::default() };
    for file in MIGRATOR.iter() {
        let name = format!("{:04}_{}", file.version, file.description.replace(' ', "_"));
        match unknown.remove(&file.version) {
            None => state.pending.push(Migration { version: file.version, name, sql: file.sql.as_str() }),
            Some(checksum) if checksum != *file.checksum => state.edited.push(name),
            Some(_) => {}
        }
    }
    state.unknown = unknown.into_keys().collect();
    Ok(state)
}

/// The lock of the process that migrates. Dropping it releases it.
#[derive(Debug)]
pub struct MigrationLock {
    _conn: PooledConn,
}

/// Takes the lock, or returns `None` if another process holds it.
///
/// A process must not wait for it within a statement: that statement's snapshot would make the holder's `create index
/// concurrently` wait for it in turn.
pub async fn try_lock_migrations(db: &Db) -> Result<Option<MigrationLock>, Error> {
    let mut conn = acquire_detached(db, LOCK_TIMEOUT).await?;
    let is_locked: bool =
        sqlx::query_scalar("select pg_try_advisory_lock(hashtextextended('webruntime:migrate', 0))")
            .fetch_one(&mut *conn)
            .await?;
    Ok(is_locked.then_some(MigrationLock { _conn: conn }))
}
