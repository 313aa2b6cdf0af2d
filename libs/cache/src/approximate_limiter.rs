//! A rate limit that costs next to nothing on a hot path: hits are counted in this process, and told to the others
//! only of keys that come near the limit, many at a time.
//!
//! A process alone is exact. Several together let through at most what each counts before it tells, a fifth of the
//! limit, and what comes between two tellings; who sends at once to one of them gets exactly the limit. While Redis
//! is away each counts for itself, with what it last knew of the others.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use hmac::{Hmac, KeyInit as _, Mac as _};
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use sha2::Sha256;

use crate::{Error, Rule};

/// No caller waits for this: it is only that one telling shouldn't run into the next for long.
const PATIENCE: Duration = Duration::from_secs(1);
/// A key is told to the others once it has used this part of the limit.
const NEAR: u32 = 5;
const SHARDS: usize = 64;
/// Keys counted at a time in each shard; in a window with more, the rest is let through uncounted.
const KEYS_MAX: usize = 16_384;

/// Counts hits by key and fixed window. Clones share the counts.
#[derive(Clone)]
pub struct ApproximateLimiter(Arc<Shared>);

struct Shared {
    rule: Rule,
    shards: [Mutex<Shard>; SHARDS],
    hasher: RandomState,
    connection: ConnectionManager,
    prefix: String,
    pepper: Box<[u8]>,
    away: AtomicBool,
}

#[derive(Default)]
struct Shard {
    window: u64,
    counts: HashMap<u128, Count>,
    /// Keys with hits to be told.
    news: Vec<u128>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Count {
    /// Hits let through here, …
    own: u32,
    /// … of those, what the others know, …
    told: u32,
    /// … and how many the others let through, as far as known.
    others: u32,
}

/// Hits of a key to be told.
struct News {
    shard: usize,
    key: u128,
    window: u64,
    hits: u32,
}

impl ApproximateLimiter {
    /// Opens the counters. Redis may be down. `pepper` keys the hash under which keys stand in Redis, and must be
    /// the same in all processes that count together. Must be called within a Tokio runtime.
    ///
    /// # Errors
    /// Only if the URL can't be understood.
    pub fn connect(url: &str, prefix: &str, pepper: &[u8], rule: Rule) -> Result<Self, Error> {
        let config = ConnectionManagerConfig::new()
            .set_response_timeout(Some(PATIENCE))
            .set_connection_timeout(Some(PATIENCE))
            .set_number_of_retries(0);
        Ok(Self(Arc::new(Shared {
            rule,
            shards: std::array::from_fn(|_| Mutex::default()),
            hasher: RandomState::new(),
            connection: ConnectionManager::new_lazy_with_config(redis::Client::open(url)?, config)?,
            prefix: prefix.to_owned(),
            pepper: pepper.into(),
            away: AtomicBool::new(false),
        })))
    }

    /// Counts one hit of `key`, and gives whether it is within the limit; what isn't is not counted.
    pub fn hit(&self, key: u128, now: DateTime<Utc>) -> bool {
        let (at, window) = (self.shard_of(key), self.window_of(now));
        let limit = self.0.rule.limit;
        let mut shard = self.shard(at);
        if shard.window != window {
            *shard = Shard { window, ..Shard::default() };
        }
        let full = shard.counts.len() >= KEYS_MAX;
        let Shard { counts, news, .. } = &mut *shard;
        if full && !counts.contains_key(&key) {
            return true;
        }
        let count = counts.entry(key).or_default();
        if count.own + count.others >= limit {
            return false;
        }
        count.own += 1;
        // Once for each telling: before it, what isn't told yet is more than this one.
        let untold = count.own - count.told;
        let near = (limit / NEAR).max(1);
        if count.own == near || (count.own > near && untold == 1) {
            news.push(key);
        }
        true
    }

    /// Tells the others what was counted here, and learns what they counted. To be called again and again.
    pub async fn share_counts(&self, now: DateTime<Utc>) {
        let window = self.window_of(now);
        let news: Vec<News> = (0..SHARDS).flat_map(|at| self.take_news(at, window)).collect();
        if news.is_empty() {
            return;
        }
        let life = self.0.rule.window.as_secs().saturating_add(2).cast_signed();
        let mut pipeline = redis::pipe();
        for News { key, window, hits, .. } in &news {
            let name = self.name(*key, *window);
            pipeline.incr(&name, *hits).expire(&name, life).ignore();
        }
        let mut connection = self.0.connection.clone();
        let totals = pipeline.query_async::<Vec<u32>>(&mut connection).await;
        let was_away = self.0.away.swap(totals.is_err(), Ordering::Relaxed);
        match totals {
            Ok(totals) => news.iter().zip(totals).for_each(|(news, total)| self.learn(news, total)),
            Err(error) => {
                if !was_away {
                    tracing::warn!(%error, "a rate limit is counted by this process alone for now");
                }
                news.iter().for_each(|news| self.untell(news));
            }
        }
    }

    fn take_news(&self, at: usize, window: u64) -> Vec<News> {
        let mut shard = self.shard(at);
        let Shard { window: own, counts, news } = &mut *shard;
        if *own != window {
            news.clear();
        }
        let take = |key| {
            let count = counts.get_mut(&key)?;
            let hits = count.own - count.told;
            count.told = count.own;
            (hits > 0).then_some(News { shard: at, key, window, hits })
        };
        news.drain(..).filter_map(take).collect()
    }

    fn learn(&self, news: &News, total: u32) {
        let mut shard = self.shard(news.shard);
        if shard.window == news.window
            && let Some(count) = shard.counts.get_mut(&news.key)
        {
            count.others = total.saturating_sub(count.told);
        }
    }

    /// They don't know after all. It is said again with the next.
    fn untell(&self, news: &News) {
        let mut shard = self.shard(news.shard);
        if shard.window == news.window
            && let Some(count) = shard.counts.get_mut(&news.key)
        {
            count.told = count.told.saturating_sub(news.hits);
            shard.news.push(news.key);
        }
    }

    fn shard(&self, at: usize) -> MutexGuard<'_, Shard> {
        self.0.shards[at].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn shard_of(&self, key: u128) -> usize {
        usize::from(self.0.hasher.hash_one(key).to_le_bytes()[0]) % SHARDS
    }

    fn window_of(&self, now: DateTime<Utc>) -> u64 {
        let length = u64::try_from(self.0.rule.window.as_millis()).unwrap_or(u64::MAX).max(1);
        u64::try_from(now.timestamp_millis()).unwrap_or_default() / length
    }

    /// Keys are often addresses: Redis gets them only as a keyed hash.
    fn name(&self, key: u128, window: u64) -> String {
        let Ok(mac) = Hmac::<Sha256>::new_from_slice(&self.0.pepper) else { return String::new() };
        let tag =
            mac.chain_update(key.to_be_bytes()).chain_update(window.to_be_bytes()).finalize().into_bytes();
        let hash = tag.iter().take(16).fold(0_u128, |hash, byte| hash << 8 | u128::from(*byte));
        format!("{}:meter:{hash:032x}", self.0.prefix)
    }
}
