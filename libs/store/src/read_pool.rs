//! A pool for reads on the request path, with a short timeout and a circuit breaker.
//!
//! An ordinary pool waits five seconds for a database that does not answer. A request for a cached page, or one that only
//! counts a view, must not wait that long. So after a timeout all queries fail at once; their callers serve cached values
//! or an error. Meanwhile a background task opens the connections again, and then closes the circuit. No request does
//! that: on an overloaded machine a new connection takes longer than a request waits, and each attempt would end
//! unfinished.
//!
//! A query that times out while Postgres answers others is slow, which is no outage: it fails alone. Its connection is
//! replaced in the background as well.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use domain::Transient;
use futures::future::join_all;
use tokio::time::{Instant, timeout_at};

use crate::db::connect_kept_open;
use crate::{Config, Conn, Db, Error};

/// Timeout of a query. A lookup by key takes about a millisecond.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Pause between two attempts to reach Postgres again.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// A connection pool with a circuit breaker. Clones share its state.
#[derive(Debug, Clone)]
pub struct ReadPool {
    db: Db,
    circuit: Arc<Circuit>,
}

#[derive(Debug, Default)]
struct Circuit {
    /// Whether all queries fail at once.
    is_open: AtomicBool,
    /// Whether a task opens the connections again.
    is_recovering: AtomicBool,
    last_answer: Mutex<Option<Instant>>,
}

impl Circuit {
    fn record_answer(&self) {
        *self.last_answer.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    fn has_answered_since(&self, time: Instant) -> bool {
        self.last_answer.lock().unwrap_or_else(PoisonError::into_inner).is_some_and(|last| last >= time)
    }
}

/// The failure of a read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Postgres did not respond in time, or the circuit is open.
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
        let pool = Self::new(connect_kept_open(config, connections, TIMEOUT)?);
        pool.open_connections();
        Ok(pool)
    }

    /// Wraps an existing pool.
    pub fn new(db: Db) -> Self {
        Self { db, circuit: Arc::default() }
    }

    /// Runs `query` on a connection, within the timeout.
    pub async fn query<T>(
        &self,
        query: impl AsyncFnOnce(&mut Conn) -> Result<T, Error>,
    ) -> Result<T, ReadError> {
        if self.circuit.is_open.load(Ordering::Acquire) {
            return Err(ReadError::Unavailable);
        }
        let began = Instant::now();
        let result = match timeout_at(began + TIMEOUT, self.run(query)).await {
            Err(_elapsed) => Err(ReadError::Unavailable),
            Ok(result) => result.map_err(ReadError::from),
        };
        if result.as_ref().is_err_and(ReadError::is_outage) {
            self.handle_outage(began);
        } else {
            self.circuit.record_answer();
        }
        result
    }

    async fn run<T>(&self, query: impl AsyncFnOnce(&mut Conn) -> Result<T, Error>) -> Result<T, Error> {
        let mut conn = crate::acquire_cancel_safe(&self.db).await?;
        let result = query(&mut conn).await;
        conn.release();
        result
    }

    /// Opens the circuit unless Postgres has answered another query since this one `began`.
    fn handle_outage(&self, began: Instant) {
        if !self.circuit.has_answered_since(began) {
            self.db.record_timeout();
            self.circuit.is_open.store(true, Ordering::Release);
        }
        self.open_connections();
    }

    /// Opens missing connections in the background, unless a task does so already.
    fn open_connections(&self) {
        if !self.circuit.is_recovering.swap(true, Ordering::AcqRel) {
            let pool = self.clone();
            tokio::spawn(async move { pool.recover().await });
        }
    }

    /// Opens missing connections, and closes the circuit as soon as Postgres answers. Waits until each connection is open
    /// or has failed, because the next requests would not wait for them.
    #[expect(clippy::disallowed_methods, reason = "the pause before Postgres is tried again")]
    async fn recover(self) {
        let connections = 0..self.db.options().get_max_connections();
        while !join_all(connections.clone().map(|_| self.answers())).await.contains(&true) {
            if Arc::strong_count(&self.circuit) == 1 {
                // The pool is dropped.
                return;
            }
            tokio::time::sleep(RETRY_INTERVAL).await;
        }
        // In this order: a query that opens the circuit in between starts a task of its own.
        self.circuit.is_recovering.store(false, Ordering::Release);
        self.circuit.is_open.store(false, Ordering::Release);
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
