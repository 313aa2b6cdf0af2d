//! Questions to Postgres on a visitor's path: soon given up, and not asked while it is known to be away.
//!
//! The pool waits five seconds for a database that doesn't answer. A visitor whose page is kept, or whose visit is
//! to be counted, must not wait with it, so while Postgres is away one question every few seconds finds out whether
//! it is back, and all others are answered at once: with what is kept, or that it can't be looked up.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use domain::Fault;
use tokio::time::timeout_at;

use crate::{Config, Conn, Db, Error, connect_with_lock_timeout};

/// A look-up by key takes a millisecond; what takes this long has failed.
const PATIENCE: Duration = Duration::from_secs(2);
/// Between the end of one vain question and the next.
const PAUSE: Duration = Duration::from_secs(1);

/// The way to Postgres for look-ups. Clones know of each other's failures.
#[derive(Debug, Clone)]
pub struct ReadPool {
    db: Db,
    /// When the next question may be asked; none while Postgres answers.
    away_until: Arc<Mutex<Option<Instant>>>,
}

/// A look-up without an answer.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Nothing came in time, now or a moment ago.
    #[error("postgres gives no answer")]
    Unavailable,
    /// Postgres said no.
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
    /// Whether others would get no answer either: a lock that one account's rows are under is no outage.
    fn is_of_the_server(&self) -> bool {
        match self {
            Self::Unavailable => true,
            Self::Database(error) => error.is_unavailable() && !error.is_row_conflict(),
        }
    }
}

impl ReadPool {
    /// Look-ups over so many connections of their own: whatever others wait for in Postgres, pages are found.
    pub fn connect(config: &Config, connections: u32) -> Result<Self, Error> {
        let own = Config { max_connections: connections, ..config.clone() };
        // Whoever has lost patience leaves no connection behind that waits for a lock.
        Ok(Self::new(connect_with_lock_timeout(&own, PATIENCE)?))
    }

    /// Look-ups in `db`.
    pub fn new(db: Db) -> Self {
        Self { db, away_until: Arc::default() }
    }

    /// Asks, and waits for the answer, but not long.
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

    /// Of all who would ask a Postgres that was away, one may; until it has its answer nobody else does.
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
