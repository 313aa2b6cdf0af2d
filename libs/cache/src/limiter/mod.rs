//! Rate limits counted together by all processes. Counters stand in Redis for one window each; while Redis is away
//! every process counts for itself, going on from what it knew, so that losing Redis neither stops visitors nor
//! lifts the limits.

mod local;
mod window;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use hmac::{Hmac, KeyInit as _, Mac as _};
use redis::Script;
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use sha2::Sha256;

use crate::Error;
use local::Local;
use window::Window;

/// A visitor waits for this call: beyond this, counting alone is better.
const PATIENCE: Duration = Duration::from_millis(150);

/// How long Redis is left alone after it failed, so that not every call waits for it.
const LEFT_ALONE: Duration = Duration::from_secs(1);

/// At most so many hits in each window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Hits allowed in a window.
    pub limit: u32,
    /// The window's length, at least a millisecond. Windows are fixed: they begin at whole multiples of it.
    pub window: Duration,
}

/// Whether a hit is allowed, and the figures of the rule that decided: of those broken the one that lasts longest,
/// else the one nearest to its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// It is, and was counted; what isn't allowed is not counted.
    pub allowed: bool,
    /// The rule's limit.
    pub limit: u32,
    /// The rule's window, whole.
    pub window: Duration,
    /// Hits left in its window after this one.
    pub remaining: u32,
    /// When it is worth trying again; zero if allowed.
    pub retry_after: Duration,
    /// When its window ends.
    pub reset_after: Duration,
}

/// Counts hits by key. Clones share the counts and the connection.
#[derive(Clone)]
pub struct Limiter {
    connection: ConnectionManager,
    script: Arc<Script>,
    prefix: Arc<str>,
    pepper: Arc<[u8]>,
    local: Local,
    patience: Duration,
    left_alone_until: Arc<Mutex<Option<Instant>>>,
}

impl Limiter {
    /// Opens the counters. Redis may be down. `pepper` keys the hash under which keys stand in Redis, and must be
    /// the same in all processes that count together. Must be called within a Tokio runtime.
    ///
    /// # Errors
    /// Only if the URL can't be understood.
    pub fn connect(url: &str, prefix: &str, pepper: &[u8]) -> Result<Self, Error> {
        Self::connect_with_timeout(url, prefix, pepper, PATIENCE)
    }

    /// As [`Limiter::connect`], waiting for Redis as long as `patience` (else 150 ms) before counting alone.
    ///
    /// # Errors
    /// Only if the URL can't be understood.
    pub fn connect_with_timeout(
        url: &str,
        prefix: &str,
        pepper: &[u8],
        patience: Duration,
    ) -> Result<Self, Error> {
        let config = ConnectionManagerConfig::new()
            .set_response_timeout(Some(patience))
            .set_connection_timeout(Some(patience))
            .set_number_of_retries(0);
        Ok(Self {
            connection: ConnectionManager::new_lazy_with_config(redis::Client::open(url)?, config)?,
            script: Arc::new(Script::new(include_str!("hit.lua"))),
            prefix: prefix.into(),
            pepper: pepper.into(),
            local: Local::new(),
            patience,
            left_alone_until: Arc::default(),
        })
    }

    /// Counts one hit of `key` against all `rules`, if all allow it. Never fails, and waits for
    /// Redis no longer than its patience. Without rules everything is allowed.
    pub async fn hit(&self, key: &str, rules: &[Rule], now: DateTime<Utc>) -> Decision {
        let hashed = self.hash(key);
        let windows: Vec<Window> = rules.iter().map(|rule| Window::of(*rule, &hashed, now)).collect();
        let counts = match self.ask(&windows).await {
            Some(counts) => {
                self.local.learn(&windows, &counts);
                counts
            }
            None => self.local.hit(&windows),
        };
        window::decide(&windows, &counts)
    }

    async fn ask(&self, windows: &[Window]) -> Option<Vec<u32>> {
        if windows.is_empty() || self.is_left_alone() {
            return windows.is_empty().then(Vec::new);
        }
        let mut call = self.script.prepare_invoke();
        for window in windows {
            call.key(format!("{}:limit:{}", self.prefix, window.name));
        }
        for window in windows {
            call.arg(window.rule.limit).arg(window.life_ms());
        }
        let mut connection = self.connection.clone();
        let answer =
            tokio::time::timeout(self.patience, call.invoke_async::<Vec<u32>>(&mut connection)).await;
        match answer {
            Ok(Ok(counts)) if counts.len() == windows.len() => Some(counts),
            other => {
                let error = other.ok().and_then(Result::err).map(|error| error.to_string());
                tracing::warn!(error, "rate limits are counted by this process alone for now");
                self.leave_alone();
                None
            }
        }
    }

    /// Keys are often addresses: Redis gets them only as a keyed hash.
    fn hash(&self, key: &str) -> String {
        use std::fmt::Write as _;
        // HMAC takes keys of any length, so this can't fail; a key without a pepper would still be hashed.
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.pepper) else { return String::new() };
        mac.update(key.as_bytes());
        mac.finalize().into_bytes().iter().take(16).fold(String::with_capacity(32), |mut hex, byte| {
            let _infallible = write!(hex, "{byte:02x}");
            hex
        })
    }

    fn is_left_alone(&self) -> bool {
        let until = *self.left_alone_until.lock().unwrap_or_else(PoisonError::into_inner);
        until.is_some_and(|until| Instant::now() < until)
    }

    fn leave_alone(&self) {
        let until = Instant::now() + LEFT_ALONE;
        *self.left_alone_until.lock().unwrap_or_else(PoisonError::into_inner) = Some(until);
    }
}
