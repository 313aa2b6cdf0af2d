//! Queries and transactions on Postgres, with a timeout for each.

use std::time::Duration;

use tokio::time::timeout;
use web::Problem;

/// A connection pool, and the time that a few statements may take.
pub(crate) struct Database {
    pool: store::Db,
    timeout: Duration,
}

impl Database {
    /// A statement waits for a lock for at most `lock_timeout`. Work that takes twice as long waits for several locks, or
    /// Postgres does not respond.
    pub(crate) fn new(pool: store::Db, lock_timeout: Duration) -> Self {
        Self { pool, timeout: 2 * lock_timeout }
    }

    pub(crate) fn pool(&self) -> &store::Db {
        &self.pool
    }

    /// Returns the time that a few statements may take.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Runs a query. On a timeout its connection is closed.
    pub(crate) async fn query<T>(
        &self,
        query: impl AsyncFnOnce(&mut store::Conn) -> Result<T, Problem>,
    ) -> Result<T, Problem> {
        let run = async {
            let mut conn = store::acquire_cancel_safe(&self.pool).await?;
            let result = query(&mut conn).await;
            conn.release();
            result
        };
        self.with_timeout(run).await
    }

    /// Runs `work` in a transaction and commits it; on an error the transaction is rolled back. The work may take as long
    /// as `limit`; its statements should each be run in [`Self::with_timeout`].
    ///
    /// # Errors
    /// The problem says whether the transaction may have been committed.
    pub(crate) async fn transaction<T>(
        &self,
        limit: Duration,
        work: impl AsyncFnOnce(&mut store::Conn) -> Result<T, Problem>,
    ) -> Result<T, Problem> {
        let mut conn = self.with_timeout(async { Ok(store::acquire_cancel_safe(&self.pool).await?) }).await?;
        let mut tx =
            self.with_timeout(async { Ok(store::begin_with_timeout(&mut conn, limit).await?) }).await?;
        let done = timeout(limit, work(&mut tx)).await.map_err(|_elapsed| Problem::nothing_changed())?;
        match done {
            Ok(done) => {
                // A commit that times out may have succeeded.
                let committed = timeout(self.timeout, store::commit(tx)).await;
                committed.map_err(|_elapsed| Problem::outcome_unknown())?.map_err(Problem::commit_failed)?;
                conn.release();
                Ok(done)
            }
            Err(problem) => {
                // The rollback precedes the response, so that no lock outlives the request.
                if let Ok(Ok(())) = timeout(self.timeout, store::rollback(tx)).await {
                    conn.release();
                }
                Err(problem)
            }
        }
    }

    /// Awaits a few statements. A timeout is an error that says that nothing was changed.
    pub(crate) async fn with_timeout<T>(
        &self,
        work: impl Future<Output = Result<T, Problem>>,
    ) -> Result<T, Problem> {
        timeout(self.timeout, work).await.unwrap_or_else(|_elapsed| Err(Problem::nothing_changed()))
    }
}
