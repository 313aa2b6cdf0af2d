//! Exports from a standby. They read a whole form, so they are what is worth to be kept from the primary, and a caller does not
//! notice where they run: the standby is used only once it has everything that was committed when the export began.

use std::time::Duration;

use tokio::time::Instant;

use super::config::Config;
use super::conn::{PooledConn, acquire, acquire_detached};
use super::pool::{Db, connect};
use crate::Error;

/// How long an export waits for the standby. One that is later is not worth the wait.
const CATCH_UP_TIMEOUT: Duration = Duration::from_secs(1);
/// How often the standby is asked how far it is.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The primary, and perhaps a standby.
#[derive(Debug, Clone)]
pub struct ExportDb {
    primary: Db,
    standby: Option<Db>,
}

impl ExportDb {
    /// Connects to `store.read_url` on first use, if it is set. All other settings are those of the primary.
    ///
    /// # Errors
    /// A setting is invalid.
    pub fn connect(primary: Db, config: &Config) -> Result<Self, Error> {
        let standby = match config.read_url.as_str() {
            "" => None,
            url => Some(connect(&Config { url: url.to_owned(), ..config.clone() })?),
        };
        Ok(Self { primary, standby })
    }

    /// Returns a connection for one statement of at most `statement_timeout`, which sees everything that is committed now. It
    /// leads to the primary if the standby is away, late, or none. Dropping it closes it.
    ///
    /// # Errors
    /// The primary does not answer.
    pub async fn acquire(&self, statement_timeout: Duration) -> Result<PooledConn, Error> {
        if let Some(standby) = &self.standby {
            match self.try_standby(standby, statement_timeout).await {
                Ok(Some(conn)) => return Ok(conn),
                Ok(None) => tracing::warn!(
                    "the database of store.read_url is late, or no standby: the primary exports"
                ),
                Err(error) => {
                    tracing::warn!(%error, "the database of store.read_url is unavailable: the primary exports");
                }
            }
        }
        acquire_detached(&self.primary, statement_timeout).await
    }

    /// Returns `None` if the standby has not replayed the primary's log in time.
    async fn try_standby(&self, standby: &Db, timeout: Duration) -> Result<Option<PooledConn>, Error> {
        let mut primary = acquire(&self.primary).await?;
        let committed = sqlx::query_scalar("select pg_current_wal_flush_lsn()::text");
        let committed: String = committed.fetch_one(&mut *primary).await?;
        drop(primary);
        let connecting = tokio::time::timeout(CATCH_UP_TIMEOUT, acquire_detached(standby, timeout));
        let Ok(conn) = connecting.await else { return Ok(None) };
        let mut conn = conn?;
        let deadline = Instant::now() + CATCH_UP_TIMEOUT;
        loop {
            let replayed =
                sqlx::query_scalar("select pg_last_wal_replay_lsn() >= $1::pg_lsn").bind(&committed);
            // Null on a server that is no standby.
            match replayed.fetch_one(&mut *conn).await? {
                Some(true) => return Ok(Some(conn)),
                Some(false) if Instant::now() < deadline => {}
                _ => return Ok(None),
            }
            tokio::time::sleep_until(Instant::now() + POLL_INTERVAL).await;
        }
    }
}
