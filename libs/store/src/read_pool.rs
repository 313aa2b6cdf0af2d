//! A pool for reads on the request path, with a short timeout and a circuit breaker.
//!
//! An ordinary pool waits five seconds for a database that does not result. A request for a cached page, or one that
//! only counts a view, must not wait that long. So while Postgres is unavailable, one query every few seconds probes
//! it, and all others fail at once; their callers serve cached values or an error.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use domain::Transient;
use tokio::time::timeout_at;

use crate::{Config, Conn, Db, Error, connect_with_lock_timeout};

/// Timeout of a query. A lookup by key takes about a millisecond.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Pause between a failed query and the next probe.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// A connection pool with a circuit breaker. Clones share its state.
#[derive(Debug, Clone)]
pub struct ReadPool {
    db: Db,
    /// When the next probe is allowed; `None` while Postgres is available.
    open_until: Arc<Mutex<Option<Instant>>>,
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
    /// Opens a pool of its own, so that pool work even when all other connections wait.
    pub fn connect(config: &Config, connections: u32) -> Result<Self, Error> {
        let own = Config { max_connections: connections, ..config.clone() };
        // A cancelled query must not leave a connection behind that waits for a lock.
        Ok(Self::new(connect_with_lock_timeout(&own, TIMEOUT)?))
    }

    /// Wraps an existing pool.
    pub fn new(db: Db) -> Self {
        Self { db, open_until: Arc::default() }
    }

    /// Runs `query` on a connection, within the timeout.
    pub async fn query<T>(
        &self,
        query: impl AsyncFnOnce(&mut Conn) -> Result<T, Error>,
    ) -> Result<T, ReadError> {
        if !self.may_query(Instant::now()) {
            return Err(ReadError::Unavailable);
        }
        let by = tokio::time::Instant::now() + TIMEOUT;
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
        let is_unavailable = result.as_ref().is_err_and(ReadError::is_outage);
        *self.open_until() = is_unavailable.then(|| Instant::now() + RETRY_INTERVAL);
        result
    }

    /// Lets one probe through while the circuit is open; all others fail until it has a result.
    fn may_query(&self, now: Instant) -> bool {
        let mut open_until = self.open_until();
        match *open_until {
            None => true,
            Some(until) if now < until => false,
            Some(_) => {
                *open_until = Some(now + TIMEOUT + RETRY_INTERVAL);
                true
            }
        }
    }

    fn open_until(&self) -> MutexGuard<'_, Option<Instant>> {
        self.open_until.lock().unwrap_or_else(PoisonError::into_inner)
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

    #[tokio::test]
    async fn after_the_interval_one_query_probes_and_success_closes_the_circuit() {
        let pool = unavailable();
        let long_ago = Instant::now();
        *pool.open_until() = Some(long_ago);
        assert!(pool.may_query(long_ago));
        assert!(!pool.may_query(long_ago), "another one waits for the result of the first");
        let database = sandbox::test::database().await;
        let pool = ReadPool { db: crate::connect(&Config::new(&database.url, 2)).unwrap(), ..pool };
        *pool.open_until() = Some(long_ago);
        assert_eq!(pool.query(async |_| Ok(7)).await.unwrap(), 7);
        assert!(pool.may_query(long_ago) && pool.may_query(long_ago));
    }
}
