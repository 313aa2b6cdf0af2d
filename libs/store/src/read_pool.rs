//! A pool for reads on the request path, with a short timeout and a circuit breaker.
//!
//! An ordinary pool waits five seconds for a database that does not answer. A request for a cached page, or one that only
//! counts a view, must not wait that long. So after a timeout all queries fail at once; their callers serve cached values
//! or an error. Meanwhile a background task opens the connections again, and then closes the circuit. No request does
//! that: on an overloaded machine a new connection takes longer than a request waits, and each attempt would end
//! unfinished.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use domain::Transient;
use futures::future::join_all;
use tokio::time::{Instant, timeout_at};

use crate::db::connect_early;
use crate::{Config, Conn, Db, Error};

/// Timeout of a query. A lookup by key takes about a millisecond.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Pause between two attempts to reach Postgres again.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// A connection pool with a circuit breaker. Clones share its state.
#[derive(Debug, Clone)]
pub struct ReadPool {
    db: Db,
    /// Whether the circuit is open: a task tries to reach Postgres, and no query does.
    is_open: Arc<AtomicBool>,
}

/// The failure of a read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Postgres did not result in time, or the circuit is open.
    #[error("postgres does not answer")]
    Unavailable,
    /// Postgres returned an error.
    #[error(transparent)]
    Database(#[from] Error),
}

impl Transient for ReadError {
    fn is_transient(&self) -> bool {
        match self {
            Self::Unavailable => true,
            Self::Database(error) => error.is_transient(),
        }
    }
}

impl ReadError {
    /// Returns whether other queries would fail as well. A lock on the rows of one account is no outage.
    fn is_outage(&self) -> bool {
        match self {
            Self::Unavailable => true,
            Self::Database(error) => {
                error.is_transient() && !error.is_row_conflict() && !error.is_read_only()
            }
        }
    }
}

impl ReadPool {
    /// Opens a pool of its own, so that reads work even when all other connections wait. Its connections are opened in
    /// the background and stay open.
    pub fn connect(config: &Config, connections: u32) -> Result<Self, Error> {
        // A cancelled query must not leave a connection behind that waits for a lock.
        Ok(Self::new(connect_early(config, connections, TIMEOUT)?))
    }

    /// Wraps an existing pool.
    pub fn new(db: Db) -> Self {
        Self { db, is_open: Arc::default() }
    }

    /// Runs `query` on a connection, within the timeout.
    pub async fn query<T>(
        &self,
        query: impl AsyncFnOnce(&mut Conn) -> Result<T, Error>,
    ) -> Result<T, ReadError> {
        if self.is_open.load(Ordering::Acquire) {
            return Err(ReadError::Unavailable);
        }
        let by = Instant::now() + TIMEOUT;
        let unavailable = |_elapsed| {
            self.db.record_timeout();
            Err(ReadError::Unavailable)
        };
        let result = match timeout_at(by, crate::acquire_cancel_safe(&self.db)).await {
            Err(elapsed) => unavailable(elapsed),
            Ok(Err(error)) => Err(error.into()),
            Ok(Ok(mut conn)) => match timeout_at(by, query(&mut conn)).await {
                Ok(result) => {
                    conn.release();
                    result.map_err(ReadError::from)
                }
                Err(elapsed) => unavailable(elapsed),
            },
        };
        if result.as_ref().is_err_and(ReadError::is_outage) && !self.is_open.swap(true, Ordering::AcqRel) {
            let pool = self.clone();
            tokio::spawn(async move { pool.recover().await });
        }
        result
    }

    /// Closes the circuit as soon as Postgres answers. Waits until each connection is open or has failed, because the
    /// next requests would not wait for them.
    #[expect(clippy::disallowed_methods, reason = "the pause before Postgres is tried again")]
    async fn recover(self) {
        let connections = 0..self.db.options().get_max_connections();
        while !join_all(connections.clone().map(|_| self.answers())).await.contains(&true) {
            if Arc::strong_count(&self.is_open) == 1 {
                // The pool is dropped.
                return;
            }
            tokio::time::sleep(RETRY_INTERVAL).await;
        }
        self.is_open.store(false, Ordering::Release);
    }

    /// Returns whether Postgres answers on a connection of its own.
    async fn answers(&self) -> bool {
        let Ok(mut conn) = crate::acquire(&self.db).await else { return false };
        crate::read_clock(&mut conn).await.is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unavailable() -> ReadPool {
        let url = "postgres://user@127.0.0.1:1/none".to_owned();
        ReadPool::new(crate::connect(&Config::new(url, 1)).unwrap())
    }

    #[tokio::test]
    async fn only_one_query_waits_for_an_unavailable_postgres() {
        let pool = unavailable();
        let query = async || pool.query(async |_| Ok(())).await;
        assert!(query().await.is_err());
        let began = Instant::now();
        for _ in 0..100 {
            assert!(matches!(query().await, Err(ReadError::Unavailable)));
        }
        assert!(began.elapsed() < RETRY_INTERVAL, "{:?}", began.elapsed());
    }
}
