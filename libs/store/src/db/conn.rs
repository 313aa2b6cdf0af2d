//! A connection with a deadline for its statements on this side.
//!
//! A connection can die without a reset: a firewall forgets it, a host loses power. The statement's answer then never
//! comes, and Postgres' own timeouts don't help. sqlx has no deadline, and its pool pings a returned connection without
//! one, so such a connection would occupy its slot for a quarter of an hour.

use std::ops::{Deref, DerefMut};
use std::time::{Duration, Instant};

use sqlx::pool::PoolConnection;
use sqlx::{PgConnection, Postgres};
use tokio::time::timeout;

use super::last_timeout::{LastTimeout, no_answer};
use super::pool::Db;
use crate::Error;
use crate::metrics::ACQUIRE_SECONDS;

/// Time beyond the statement timeout of Postgres, so that its error, which is more precise, arrives first.
const MARGIN: Duration = Duration::from_secs(1);
/// How long a returned connection may take to roll back and to answer a ping.
const RETURN_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection, inside or outside a transaction. Each statement fails at its deadline. A connection with an unfinished
/// statement, because it timed out or its future was dropped, accepts no further statement and is closed on drop.
#[derive(Debug)]
pub struct Conn {
    raw: Raw,
    state: State,
}

#[derive(Debug)]
enum Raw {
    Pooled(Option<PoolConnection<Postgres>>),
    /// Closed on drop.
    Detached(Box<PgConnection>),
}

/// What is known about a connection's last statement.
#[derive(Debug)]
pub(super) struct State {
    timeout: Duration,
    last_timeout: LastTimeout,
    is_unfinished: bool,
    /// An open transaction must be rolled back before the connection is reused.
    pub(super) in_transaction: bool,
}

/// A connection of the pool; dropping it returns it.
#[derive(Debug)]
pub struct PooledConn(Conn);

/// Records its lifetime on drop, so that the wait of a caller that gives up counts as well.
struct Wait(Instant);

impl Drop for Wait {
    fn drop(&mut self) {
        ACQUIRE_SECONDS.record(self.0.elapsed(), &[]);
    }
}

/// Takes a connection from the pool; dropping it returns it.
pub async fn acquire(db: &Db) -> Result<PooledConn, Error> {
    Ok(acquire_raw(db).await?)
}

pub(super) async fn acquire_raw(db: &Db) -> sqlx::Result<PooledConn> {
    let wait = Wait(Instant::now());
    let conn = db.pool().acquire().await?;
    drop(wait);
    Ok(PooledConn(Conn {
        raw: Raw::Pooled(Some(conn)),
        state: State {
            timeout: db.statement_timeout() + MARGIN,
            last_timeout: db.last_timeout().clone(),
            is_unfinished: false,
            in_transaction: false,
        },
    }))
}

/// Takes a connection out of the pool; dropping it closes it. For one long statement that may be cancelled halfway and
/// runs for at most `statement_timeout`.
pub async fn acquire_detached(db: &Db, statement_timeout: Duration) -> Result<PooledConn, Error> {
    let mut pooled = acquire_raw(db).await?;
    let set = format!("set statement_timeout = {}", statement_timeout.as_millis());
    sqlx::raw_sql(sqlx::AssertSqlSafe(set)).execute(&mut *pooled).await?;
    if let Raw::Pooled(conn) = &mut pooled.0.raw
        && let Some(conn) = conn.take()
    {
        pooled.0.raw = Raw::Detached(Box::new(conn.detach()));
    }
    pooled.0.state.timeout = statement_timeout + MARGIN;
    Ok(pooled)
}

impl Conn {
    /// Returns the connection for one statement, and the state that records whether it finished.
    ///
    /// # Errors
    ///
    /// An earlier statement is unfinished.
    pub(super) fn statement(&mut self) -> sqlx::Result<(&mut PgConnection, &mut State)> {
        if self.state.is_unfinished {
            return Err(no_answer());
        }
        let raw = match &mut self.raw {
            Raw::Pooled(Some(conn)) => &mut **conn,
            Raw::Pooled(None) => return Err(sqlx::Error::PoolClosed),
            Raw::Detached(conn) => &mut **conn,
        };
        Ok((raw, &mut self.state))
    }

    /// Lets the further statements of this transaction run for up to `limit`: deletions take as long as there are rows.
    pub(crate) async fn allow_long_statements(&mut self, limit: Duration) -> sqlx::Result<()> {
        let set = format!("set local statement_timeout = {}", limit.as_millis());
        sqlx::raw_sql(sqlx::AssertSqlSafe(set)).execute(&mut *self).await?;
        self.state.timeout = limit + MARGIN;
        Ok(())
    }

    /// Returns the connection for a statement that occupies it until it is closed.
    pub(crate) fn last_statement(&mut self) -> sqlx::Result<&mut PgConnection> {
        let (raw, state) = self.statement()?;
        state.is_unfinished = true;
        Ok(raw)
    }

    pub(super) fn state(&mut self) -> &mut State {
        &mut self.state
    }

    /// Closes the connection on drop instead of returning it to the pool.
    pub(super) fn close_on_drop(&mut self) {
        self.state.is_unfinished = true;
    }
}

impl State {
    /// Awaits a statement until its deadline.
    pub(super) async fn within<T>(
        &mut self,
        statement: impl Future<Output = sqlx::Result<T>>,
    ) -> sqlx::Result<T> {
        let by = self.begin();
        match tokio::time::timeout_at(by, statement).await {
            Ok(result) => {
                self.finish();
                result
            }
            Err(_elapsed) => Err(self.give_up()),
        }
    }

    /// Records that a statement reached its deadline, and returns its error.
    pub(super) fn give_up(&self) -> sqlx::Error {
        self.last_timeout.record();
        tracing::warn!("a statement got no answer from postgres; its connection is closed");
        no_answer()
    }

    /// Marks the statement as begun and returns its deadline.
    pub(super) fn begin(&mut self) -> tokio::time::Instant {
        self.is_unfinished = true;
        tokio::time::Instant::now() + self.timeout
    }

    pub(super) fn finish(&mut self) {
        self.is_unfinished = false;
    }
}

impl Deref for PooledConn {
    type Target = Conn;

    fn deref(&self) -> &Conn {
        &self.0
    }
}

impl DerefMut for PooledConn {
    fn deref_mut(&mut self) -> &mut Conn {
        &mut self.0
    }
}

impl Drop for Conn {
    fn drop(&mut self) {
        let Raw::Pooled(conn) = &mut self.raw else { return };
        let Some(mut conn) = conn.take() else { return };
        if self.state.is_unfinished {
            conn.close_on_drop();
            return;
        }
        // Without a runtime the pool is gone as well.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let in_transaction = self.state.in_transaction;
        runtime.spawn(async move {
            if in_transaction {
                let rollback = timeout(RETURN_TIMEOUT, sqlx::raw_sql("rollback").execute(&mut *conn)).await;
                if !matches!(rollback, Ok(Ok(_))) {
                    conn.close_on_drop();
                    return;
                }
            }
            // Dropped at its deadline, this future closes the connection and frees its slot.
            let _closed_instead = timeout(RETURN_TIMEOUT, conn.return_to_pool()).await;
        });
    }
}
