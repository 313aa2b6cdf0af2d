//! Rate limits shared by all processes. Each window has a counter in Redis. While Redis is unavailable, every process
//! counts for itself and continues from the last known counts, so that losing Redis neither stops visitors nor lifts
//! the limits.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use hmac::{Hmac, KeyInit as _, Mac as _};
use redis::Script;
use redis_connection::{Connection, Primary, Server};
use sha2::Sha256;

use super::local::Local;
use super::rule::{Decision, Rule};
use super::window::{Window, decide};
use crate::Error;

/// Default timeout of a call. A visitor waits for it: beyond this, counting locally is better.
const DEFAULT_TIMEOUT: Duration = Duration::from_millis(150);

/// How long Redis isn't called after a failure, so that not every hit waits for the timeout.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Counts hits by key. Clones share the counts and the connection.
#[derive(Clone)]
pub struct Limiter {
    connection: Connection,
    script: Arc<Script>,
    prefix: Arc<str>,
    pepper: Arc<[u8]>,
    local: Local,
    retry_at: Arc<Mutex<Option<Instant>>>,
}

impl Limiter {
    /// Creates a limiter. Redis may be down. `pepper` is the key of the hash under which Redis stores keys; all
    /// processes that share a limit must use the same. Must be called within a Tokio runtime. Fails only if a setting
    /// is invalid.
    pub fn connect(server: impl Into<Server>, prefix: &str, pepper: &[u8]) -> Result<Self, Error> {
        Self::connect_with_timeout(server, prefix, pepper, DEFAULT_TIMEOUT)
    }

    /// Like [`Limiter::connect`], but waits for Redis up to `timeout` instead of 150 ms before it counts locally.
    pub fn connect_with_timeout(
        server: impl Into<Server>,
        prefix: &str,
        pepper: &[u8],
        timeout: Duration,
    ) -> Result<Self, Error> {
        Ok(Self {
            connection: Connection::new(Primary::new(server)?, timeout, 0),
            script: Arc::new(Script::new(include_str!("hit.lua"))),
            prefix: prefix.into(),
            pepper: pepper.into(),
            local: Local::new(),
            retry_at: Arc::default(),
        })
    }

    /// Counts one hit of `key` against all `rules`, if all allow it. Never fails, and waits for Redis no longer than
    /// the timeout. Without rules every hit is allowed.
    pub async fn hit(&self, key: &str, rules: &[Rule], now: DateTime<Utc>) -> Decision {
        let hashed = self.hash(key);
        let windows: Vec<Window> = rules.iter().map(|rule| Window::of(*rule, &hashed, now)).collect();
        let counts = match self.count_in_redis(&windows).await {
            Some(counts) => {
                self.local.update(&windows, &counts);
                counts
            }
            None => self.local.hit(&windows),
        };
        decide(&windows, &counts)
    }

    async fn count_in_redis(&self, windows: &[Window]) -> Option<Vec<u32>> {
        if windows.is_empty() || self.is_backing_off() {
            return windows.is_empty().then(Vec::new);
        }
        let mut call = self.script.prepare_invoke();
        for window in windows {
            call.key(format!("{}:limit:{}", self.prefix, window.name));
        }
        for window in windows {
            call.arg(window.rule.limit).arg(window.ttl_ms());
        }
        let response = self.connection.call(async |redis| call.invoke_async::<Vec<u32>>(redis).await).await;
        match response {
            Ok(counts) if counts.len() == windows.len() => Some(counts),
            other => {
                let error = other.err().map(|error| error.to_string());
                tracing::warn!(error, "Redis is unavailable: this process counts rate limits alone");
                self.back_off();
                None
            }
        }
    }

    /// Hashes a key. Keys are often IP addresses, which Redis must not store in the clear.
    fn hash(&self, key: &str) -> String {
        use std::fmt::Write as _;
        // HMAC accepts keys of any length, so this can't fail.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.pepper) else { return String::new() };
        mac.update(key.as_bytes());
        mac.finalize().into_bytes().iter().take(16).fold(String::with_capacity(32), |mut hex, byte| {
            let _infallible = write!(hex, "{byte:02x}");
            hex
        })
    }

    fn is_backing_off(&self) -> bool {
        let retry_at = *self.retry_at.lock().unwrap_or_else(PoisonError::into_inner);
        retry_at.is_some_and(|retry_at| Instant::now() < retry_at)
    }

    fn back_off(&self) {
        let retry_at = Instant::now() + RETRY_INTERVAL;
        *self.retry_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(retry_at);
    }
}
