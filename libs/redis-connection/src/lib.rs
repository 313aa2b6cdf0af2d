//! A connection to Redis that is replaced when it no longer answers or no longer leads to the primary. The connection manager
//! of the redis crate reconnects when a connection is closed, but keeps one that died without a reset, and always to the same
//! server.

mod error;
mod installation_keys;
pub mod metrics;
mod primary;
mod reconnects;
mod server;
mod server_info;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use instruments::MeasuredStore;
use redis::RedisResult;
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use tokio::time::{Instant, timeout_at};

pub use error::Error;
pub use installation_keys::{count_subscribers, delete_keys};
pub use primary::Primary;
pub use reconnects::Reconnects;
pub use server::Server;
pub use server_info::{ServerInfo, server_info};

/// Longest timeout of an attempt to connect. A call with a longer timeout may try again.
const MAX_CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Longest pause between two attempts.
const MAX_RETRY_DELAY: Duration = Duration::from_millis(200);

/// A shared connection with a timeout for each call. Clones share it.
#[derive(Clone)]
pub struct Connection {
    primary: Primary,
    config: ConnectionManagerConfig,
    timeout: Duration,
    current: Arc<Mutex<Current>>,
    /// Held while the primary is looked up, so that concurrent calls do it once.
    lookup: Arc<tokio::sync::Mutex<()>>,
    reconnects: Reconnects,
}

#[derive(Default)]
struct Current {
    /// `None` before the first call and after the connection was given up.
    manager: Option<ConnectionManager>,
    /// Increases with each replacement, so that concurrent calls replace a dead connection once.
    generation: u64,
}

impl Connection {
    /// Connects on first use, with `retries` further attempts.
    #[must_use]
    pub fn new(primary: Primary, timeout: Duration, retries: usize) -> Self {
        let config = ConnectionManagerConfig::new()
            .set_response_timeout(Some(timeout))
            .set_connection_timeout(Some(timeout.min(MAX_CONNECT_TIMEOUT)))
            .set_number_of_retries(retries)
            .set_max_delay(MAX_RETRY_DELAY);
        let (current, lookup, reconnects) = (Arc::default(), Arc::default(), Reconnects::default());
        Self { primary, config, timeout, current, lookup, reconnects }
    }

    /// Makes a call within the timeout, which also covers the wait for a connection. After a timeout, and after an error that
    /// says that the server is no longer the primary, the next call uses a new connection. Must be called within a Tokio
    /// runtime.
    pub async fn call<T>(
        &self,
        call: impl AsyncFnOnce(&mut ConnectionManager) -> RedisResult<T>,
    ) -> Result<T, Error> {
        MeasuredStore::Redis.measure(self.blocking_call(call), Result::is_ok).await
    }

    /// Like [`Self::call`], for a call that waits in Redis for something to happen, so that its duration says nothing about
    /// Redis and is not measured.
    pub async fn blocking_call<T>(
        &self,
        call: impl AsyncFnOnce(&mut ConnectionManager) -> RedisResult<T>,
    ) -> Result<T, Error> {
        let deadline = Instant::now() + self.timeout;
        let Ok(connected) = timeout_at(deadline, self.manager()).await else {
            self.reconnects.record_loss();
            return Err(Error::Timeout);
        };
        let (mut manager, generation) = connected?;
        match timeout_at(deadline, call(&mut manager)).await {
            Ok(Err(error)) if !error.is_timeout() => {
                self.reconnects.record_error(&error);
                if self.primary.may_have_moved(&error) {
                    self.give_up(generation);
                }
                Err(error.into())
            }
            Ok(Ok(value)) => {
                self.reconnects.record_answer();
                Ok(value)
            }
            Ok(Err(_)) | Err(_) => {
                self.reconnects.record_loss();
                self.give_up(generation);
                Err(Error::Timeout)
            }
        }
    }

    /// Returns the current connection, after looking up the primary if there is none.
    async fn manager(&self) -> RedisResult<(ConnectionManager, u64)> {
        if let Some(connected) = self.current().connected() {
            return Ok(connected);
        }
        let _lookup = self.lookup.lock().await;
        if let Some(connected) = self.current().connected() {
            return Ok(connected);
        }
        let client = self.primary.client().await?;
        let manager = ConnectionManager::new_lazy_with_config(client, self.config.clone())?;
        let mut current = self.current();
        current.manager = Some(manager.clone());
        Ok((manager, current.generation))
    }

    /// Lets the next call make a new connection, unless another call did.
    fn give_up(&self, generation: u64) {
        let mut current = self.current();
        if current.generation == generation {
            *current = Current { manager: None, generation: generation + 1 };
        }
    }

    fn current(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Current {
    fn connected(&self) -> Option<(ConnectionManager, u64)> {
        Some((self.manager.clone()?, self.generation))
    }
}
