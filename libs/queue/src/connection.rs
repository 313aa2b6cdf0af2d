//! A connection to Redis that is replaced when it no longer answers. The connection manager of the redis crate reconnects
//! when a connection is closed, but keeps one that died without a reset.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::RedisResult;
use redis::aio::{ConnectionManager, ConnectionManagerConfig};

use crate::error::Error;

/// Timeout of connecting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// A shared connection with a timeout for each call.
pub(crate) struct Connection {
    client: redis::Client,
    timeout: Duration,
    current: Mutex<Current>,
}

struct Current {
    manager: ConnectionManager,
    /// Increases with each replacement, so that concurrent calls replace a dead connection once.
    generation: u64,
}

impl Connection {
    /// Connects on first use. Must be called within a Tokio runtime.
    pub(crate) fn new(client: redis::Client, timeout: Duration) -> Result<Self, Error> {
        let manager = open(&client, timeout)?;
        Ok(Self { client, timeout, current: Mutex::new(Current { manager, generation: 0 }) })
    }

    /// Makes a call within the timeout, which also covers the wait for a connection. After a timeout the next call uses a
    /// new connection.
    pub(crate) async fn call<T>(
        &self,
        call: impl AsyncFnOnce(&mut ConnectionManager) -> RedisResult<T>,
    ) -> Result<T, Error> {
        let (mut manager, generation) = {
            let current = self.current();
            (current.manager.clone(), current.generation)
        };
        match tokio::time::timeout(self.timeout, call(&mut manager)).await {
            Ok(Err(error)) if !error.is_timeout() => Err(error.into()),
            Ok(Ok(value)) => Ok(value),
            Ok(Err(_)) | Err(_) => {
                self.replace(generation)?;
                Err(Error::Timeout)
            }
        }
    }

    fn replace(&self, generation: u64) -> Result<(), Error> {
        let mut current = self.current();
        if current.generation == generation {
            current.generation += 1;
            current.manager = open(&self.client, self.timeout)?;
        }
        Ok(())
    }

    fn current(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn open(client: &redis::Client, timeout: Duration) -> Result<ConnectionManager, Error> {
    let config = ConnectionManagerConfig::new()
        .set_response_timeout(Some(timeout))
        .set_connection_timeout(Some(CONNECT_TIMEOUT))
        .set_number_of_retries(2)
        .set_max_delay(Duration::from_millis(200));
    Ok(ConnectionManager::new_lazy_with_config(client.clone(), config)?)
}
