//! A connection to Redis that is replaced when it no longer answers. The connection manager of the redis crate reconnects
//! when a connection is closed, but keeps one that died without a reset.

mod error;
pub mod metrics;
mod reconnects;
mod server;
mod server_info;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use instruments::MeasuredStore;
use redis::RedisResult;
use redis::aio::{ConnectionManager, ConnectionManagerConfig};

pub use error::Error;
pub use reconnects::Reconnects;
pub use server::{Server, client};
pub use server_info::{ServerInfo, server_info};

/// Longest timeout of an attempt to connect. A call with a longer timeout may try again.
const MAX_CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// Longest pause between two attempts.
const MAX_RETRY_DELAY: Duration = Duration::from_millis(200);

/// A shared connection with a timeout for each call. Clones share it.
#[derive(Clone)]
pub struct Connection {
    client: redis::Client,
    config: ConnectionManagerConfig,
    timeout: Duration,
    current: Arc<Mutex<Current>>,
    reconnects: Reconnects,
}

struct Current {
    manager: ConnectionManager,
    /// Increases with each replacement, so that concurrent calls replace a dead connection once.
    generation: u64,
}

impl Connection {
    /// Connects on first use, with `retries` further attempts. Must be called within a Tokio runtime.
    pub fn new(client: redis::Client, timeout: Duration, retries: usize) -> Result<Self, Error> {
        let config = ConnectionManagerConfig::new()
            .set_response_timeout(Some(timeout))
            .set_connection_timeout(Some(timeout.min(MAX_CONNECT_TIMEOUT)))
            .set_number_of_retries(retries)
            .set_max_delay(MAX_RETRY_DELAY);
        let manager = ConnectionManager::new_lazy_with_config(client.clone(), config.clone())?;
        let current = Arc::new(Mutex::new(Current { manager, generation: 0 }));
        Ok(Self { client, config, timeout, current, reconnects: Reconnects::default() })
    }

    /// Makes a call within the timeout, which also covers the wait for a connection. After a timeout the next call uses a
    /// new connection.
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
        let (mut manager, generation) = {
            let current = self.current();
            (current.manager.clone(), current.generation)
        };
        match tokio::time::timeout(self.timeout, call(&mut manager)).await {
            Ok(Err(error)) if !error.is_timeout() => {
                self.reconnects.record_error(&error);
                Err(error.into())
            }
            Ok(Ok(value)) => {
                self.reconnects.record_answer();
                Ok(value)
            }
            Ok(Err(_)) | Err(_) => {
                self.reconnects.record_loss();
                self.replace(generation);
                Err(Error::Timeout)
            }
        }
    }

    fn replace(&self, generation: u64) {
        let mut current = self.current();
        if current.generation != generation {
            return;
        }
        current.generation += 1;
        match ConnectionManager::new_lazy_with_config(self.client.clone(), self.config.clone()) {
            Ok(manager) => current.manager = manager,
            Err(error) => tracing::error!(%error, "replacing a connection to Redis failed"),
        }
    }

    fn current(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
