//! A pool for reads on the request path, with a short timeout and a circuit breaker.
//!
//! An ordinary pool waits five seconds for a database that does not answer. A request for a cached page, or one that
//! only counts a view, must not wait that long. So while Postgres is unavailable, one query every few seconds probes
//! it, and all others fail at once; their callers serve cached values or an error.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use domain::Fault;
use tokio::time::timeout_at;

use crate::{Config, Conn, Db, Error, connect_with_lock_timeout};

/// Timeout of a query. A lookup by key takes about a millisecond.
const PATIENCE: Duration = Duration::from_secs(2);
/// Pause between a failed query and the next probe.
const PAUSE: Duration = Duration::from_secs(1);

/// A connection pool with a circuit breaker. Clones share its state.
#[derive(Debug, Clone)]
pub struct ReadPool {
    db: Db,
    /// When the next probe is allowed; `None` while Postgres is available.
    away_until: Arc<Mutex<Option<Instant>>>,
}

/// The failure of a read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Postgres did not answer in time, or the circuit is open.
    #[error("postgres gives no answer")]
    Unavailable,
    /// Postgres returned an error.
    #[error(transparent)]
    Database(#[from] Error),
}

impl Fault for ReadError {
    fn is_unavailable(&self) -> bool {
        match self {
            Self::Unavailable => true,
            Self::Database(error) => error.is_unavailable(),
        }
    }
}

impl ReadError {
    /// Returns whether other queries would fail as well. A lock on the rows of one account is no outage.
    fn is_of_the_server(&self) -> bool {
        match self {
            Self::Unavailable => true,
            Self::Database(error) => error.is_unavailable() && !error.is_row_conflict(),
        }
    }
}

impl ReadPool {
    /// Opens a pool of its own, so that lookups work even when all other connections wait.
    pub fn connect(config: &Config, connections: u32) -> Result<Self, Error> {
        let own = Config { max_connections: connections, ..config.clone() };
        // A cancelled query must not leave a connection behind that waits for a lock.
        Ok(Self::new(connect_with_lock_timeout(&own, PATIENCE)?))
    }

    /// Wraps an existing pool.
    pub fn new(db: Db) -> Self {
        Self { db, away_until: Arc::default() }
    }

    /// Runs `question` on a connection, within the timeout.
    pub async fn query<T>(
        &self,
        question: impl AsyncFnOnce(&mut Conn) -> Result<T, Error>,
    ) -> Result<T, ReadError> {
        if !self.may_ask(Instant::now()) {
            return Err(ReadError::Unavailable);
        }
        let by = tokio::time::Instant::now() + PATIENCE;
        let answer = match timeout_at(by, crate::acquire_cancel_safe(&self.db)).await {
            Err(_elapsed) => Err(ReadError::Unavailable),
            Ok(Err(error)) => Err(error.into()),
            Ok(Ok(mut conn)) => match timeout_at(by, question(&mut conn)).await {
                Ok(answer) => {
                    conn.release();
                    answer.map_err(ReadError::from)
                }
                Err(_elapsed) => Err(ReadError::Unavailable),
            },
        };
        let is_away = answer.as_ref().is_err_and(ReadError::is_of_the_server);
        *self.away_until() = is_away.then(|| Instant::now() + PAUSE);
        answer
    }

    /// Lets one probe through while the circuit is open; all others fail until it has a result.
    fn may_ask(&self, now: Instant) -> bool {
        let mut away_until = self.away_until();
        match *away_until {
            None => true,
            Some(until) if now < until => false,
            Some(_) => {
                *away_until = Some(now + PATIENCE + PAUSE);
                true
            }
        }
    }

    fn away_until(&self) -> MutexGuard<'_, Option<Instant>> {
        self.away_until.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn away() -> ReadPool {
        let url = "postgres://nobody@127.0.0.1:1/none".to_owned();
        ReadPool::new(crate::connect(&crate::Config { url, max_connections: 1 }).unwrap())
    }

    #[tokio::test]
    async fn only_the_first_of_many_waits_for_a_postgres_that_is_away() {
        let lookups = away();
        let ask = async || lookups.query(async |_| Ok(())).await;
        assert!(ask().await.is_err());
        let began = Instant::now();
        for _ in 0..100 {
            assert!(matches!(ask().await, Err(ReadError::Unavailable)));
        }
        assert!(began.elapsed() < PAUSE, "{:?}", began.elapsed());
    }

    #[tokio::test]
    async fn after_the_pause_one_finds_out_and_an_answer_opens_the_way() {
        let lookups = away();
        let long_ago = Instant::now();
        *lookups.away_until() = Some(long_ago);
        assert!(lookups.may_ask(long_ago));
        assert!(!lookups.may_ask(long_ago), "another one waits for the answer of the first");
        let database = sandbox::test::database().await;
        let lookups = ReadPool { db: database.db.clone(), ..lookups };
        *lookups.away_until() = Some(long_ago);
        assert_eq!(lookups.query(async |_| Ok(7)).await.unwrap(), 7);
        assert!(lookups.may_ask(long_ago) && lookups.may_ask(long_ago));
    }
}
