//! Values in Redis that expire. Each is a copy of something else, so that Redis may lose it.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use redis_connection::{Connection, Primary, Server};

use crate::Error;

/// Timeout of a call.
const TIMEOUT: Duration = Duration::from_millis(200);
/// Values of one call.
const BATCH: usize = 100;

/// A value to store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExpiringValue {
    pub key: String,
    pub value: Vec<u8>,
    pub expires_at: DateTime<Utc>,
}

/// Stores and returns values. Clones share the connection.
#[derive(Clone)]
pub struct ExpiringValues {
    connection: Connection,
    prefix: Arc<str>,
}

impl ExpiringValues {
    /// Connects on first use. Must be called within a Tokio runtime. Fails only if a setting is invalid.
    pub fn connect(server: impl Into<Server>, prefix: &str) -> Result<Self, Error> {
        Ok(Self { connection: Connection::new(Primary::new(server)?, TIMEOUT, 0), prefix: prefix.into() })
    }

    /// Returns a value, or `None` if there is none or it has expired.
    pub async fn get(&self, key: &str) -> Result<Option<Vec<u8>>, Error> {
        let key = self.full_key(key);
        let get = async |redis: &mut redis::aio::ConnectionManager| {
            redis::cmd("GET").arg(&key).query_async::<Option<Vec<u8>>>(redis).await
        };
        Ok(self.connection.call(get).await?)
    }

    /// Stores values, each of which replaces an earlier one. After an error, some of them may be stored.
    pub async fn put_all(&self, values: &[ExpiringValue]) -> Result<(), Error> {
        for values in values.chunks(BATCH) {
            let mut pipeline = redis::pipe();
            for ExpiringValue { key, value, expires_at } in values {
                let set = pipeline.cmd("SET").arg(self.full_key(key)).arg(value);
                set.arg("PXAT").arg(expires_at.timestamp_millis()).ignore();
            }
            self.connection.call(async |redis| pipeline.query_async::<()>(redis).await).await?;
        }
        Ok(())
    }

    fn full_key(&self, key: &str) -> String {
        format!("{}:{key}", self.prefix)
    }
}
