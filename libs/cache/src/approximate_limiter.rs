//! A rate limit for hot paths. Hits are counted in this process. Counts of keys near the limit are shared with the
//! other processes in batches.
//!
//! One process alone is exact. Several let through at most a fifth of the limit each before they share a count, and the
//! hits between two exchanges. A client that uses a single process gets exactly the limit. While Redis is unavailable,
//! each process counts for itself and adds the last known counts of the others.
//!
//! Memory is bounded: beyond [`MAX_KEYS`] the keys with the fewest hits are forgotten. A forgotten key begins anew, so no
//! flood of keys makes others exceed their limit. To be forgotten near its limit, a client would need as many hits of
//! a million other keys first.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use hmac::{Hmac, KeyInit as _, Mac as _};
use redis_connection::{Connection, Primary, Server};
use sha2::Sha256;

use crate::{Error, Rule};

/// Timeout of an exchange. No hit waits for it; it keeps one exchange from delaying the next.
const EXCHANGE_TIMEOUT: Duration = Duration::from_secs(1);
/// A key's count is shared once it reaches this fraction (1/5) of the limit.
const SHARE_FROM: u32 = 5;
const SHARDS: usize = 64;
/// Keys counted at a time in each shard: as many as a map of 16,384 buckets holds. All shards take about 35 MB.
const MAX_KEYS: usize = 14_336;
/// A full shard forgets this fraction (1/4) of its keys at once, so that few hits of a flood have to look for them.
const FORGET: usize = 4;

/// Counts hits by key and fixed window. Clones share the counts.
#[derive(Clone)]
pub struct ApproximateLimiter(Arc<Shared>);

struct Shared {
    rule: Rule,
    shards: [Mutex<Shard>; SHARDS],
    hasher: RandomState,
    connection: Connection,
    prefix: String,
    pepper: Box<[u8]>,
    is_unavailable: AtomicBool,
}

#[derive(Default)]
struct Shard {
    window: u64,
    counts: HashMap<u128, Count>,
    /// Keys with hits to share.
    pending: Vec<u128>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Count {
    /// Hits let through by this process.
    own: u32,
    /// The part of `own` that the other processes know.
    shared: u32,
    /// Hits let through by the other processes, as far as known.
    others: u32,
}

/// Hits of a key to share.
struct Increment {
    shard: usize,
    key: u128,
    window: u64,
    hits: u32,
}

impl Shard {
    /// Forgets a part of the keys: those with the fewest hits, and of keys with equally many any.
    fn forget_fewest_hits(&mut self) {
        let number = self.counts.len() / FORGET;
        let mut hits: Vec<u32> = self.counts.values().map(Count::hits).collect();
        let (fewer, most, _) = hits.select_nth_unstable(number);
        let (most, mut equal) = (*most, number);
        equal -= fewer.iter().filter(|hits| **hits < most).count();
        // A new map: removing from the old one would leave it to grow.
        let counts = std::mem::replace(&mut self.counts, HashMap::with_capacity(MAX_KEYS));
        self.counts.extend(counts.into_iter().filter(|(_, count)| {
            let hits = count.hits();
            let is_forgotten = hits < most || (hits == most && equal > 0);
            equal -= usize::from(is_forgotten && hits == most);
            !is_forgotten
        }));
    }
}

impl Count {
    fn hits(&self) -> u32 {
        self.own.saturating_add(self.others)
    }
}

impl ApproximateLimiter {
    /// Creates a limiter. Redis may be down. `pepper` is the key of the hash under which Redis stores keys; all
    /// processes that share a limit must use the same. Must be called within a Tokio runtime. Fails only if a setting
    /// is invalid.
    pub fn connect(
        server: impl Into<Server>,
        prefix: &str,
        pepper: &[u8],
        rule: Rule,
    ) -> Result<Self, Error> {
        Ok(Self(Arc::new(Shared {
            rule,
            shards: std::array::from_fn(|_| Mutex::default()),
            hasher: RandomState::new(),
            connection: Connection::new(Primary::new(server)?, EXCHANGE_TIMEOUT, 0),
            prefix: prefix.to_owned(),
            pepper: pepper.into(),
            is_unavailable: AtomicBool::new(false),
        })))
    }

    /// Counts one hit of `key` and returns whether it is within the limit. Rejected hits are not counted.
    pub fn hit(&self, key: u128, now: DateTime<Utc>) -> bool {
        self.hit_within(key, self.0.rule.limit, now)
    }

    /// Like [`Self::hit`], but with a limit of its own for this key.
    pub fn hit_within(&self, key: u128, limit: u32, now: DateTime<Utc>) -> bool {
        let (index, window) = (self.shard_of(key), self.window_of(now));
        let mut shard = self.shard(index);
        if shard.window != window {
            *shard = Shard { window, ..Shard::default() };
        }
        if shard.counts.len() >= MAX_KEYS && !shard.counts.contains_key(&key) {
            shard.forget_fewest_hits();
        }
        let Shard { counts, pending, .. } = &mut *shard;
        let count = counts.entry(key).or_default();
        if count.hits() >= limit {
            return false;
        }
        count.own += 1;
        // Adds the key once per exchange: later hits find more than one unshared hit.
        let unshared = count.own - count.shared;
        let share_from = (limit / SHARE_FROM).max(1);
        if count.own == share_from || (count.own > share_from && unshared == 1) {
            pending.push(key);
        }
        true
    }

    /// Adds this process's pending hits to the shared counts and reads the totals. Call it periodically.
    pub async fn share_counts(&self, now: DateTime<Utc>) {
        let window = self.window_of(now);
        let increments: Vec<Increment> =
            (0..SHARDS).flat_map(|index| self.take_pending(index, window)).collect();
        if increments.is_empty() {
            return;
        }
        let ttl = self.0.rule.window.as_secs().saturating_add(2).cast_signed();
        let mut pipeline = redis::pipe();
        for Increment { key, window, hits, .. } in &increments {
            let name = self.name(*key, *window);
            pipeline.incr(&name, *hits).expire(&name, ttl).ignore();
        }
        let totals =
            self.0.connection.call(async |redis| pipeline.query_async::<Vec<u32>>(redis).await).await;
        let was_unavailable = self.0.is_unavailable.swap(totals.is_err(), Ordering::Relaxed);
        match totals {
            Ok(totals) => increments
                .iter()
                .zip(totals)
                .for_each(|(increment, total)| self.update_others(increment, total)),
            Err(error) => {
                if !was_unavailable {
                    tracing::warn!(%error, "Redis is unavailable: this process counts a rate limit alone");
                }
                increments.iter().for_each(|increment| self.put_back(increment));
            }
        }
    }

    fn take_pending(&self, index: usize, window: u64) -> Vec<Increment> {
        let mut shard = self.shard(index);
        let Shard { window: own, counts, pending } = &mut *shard;
        if *own != window {
            pending.clear();
        }
        let take = |key| {
            let count = counts.get_mut(&key)?;
            let hits = count.own - count.shared;
            count.shared = count.own;
            (hits > 0).then_some(Increment { shard: index, key, window, hits })
        };
        pending.drain(..).filter_map(take).collect()
    }

    fn update_others(&self, increment: &Increment, total: u32) {
        let mut shard = self.shard(increment.shard);
        if shard.window == increment.window
            && let Some(count) = shard.counts.get_mut(&increment.key)
        {
            count.others = total.saturating_sub(count.shared);
        }
    }

    /// Puts an increment back that Redis didn't receive; the next exchange sends it again.
    fn put_back(&self, increment: &Increment) {
        let mut shard = self.shard(increment.shard);
        if shard.window == increment.window
            && let Some(count) = shard.counts.get_mut(&increment.key)
        {
            count.shared = count.shared.saturating_sub(increment.hits);
            shard.pending.push(increment.key);
        }
    }

    fn shard(&self, index: usize) -> MutexGuard<'_, Shard> {
        self.0.shards[index].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn shard_of(&self, key: u128) -> usize {
        usize::from(self.0.hasher.hash_one(key).to_le_bytes()[0]) % SHARDS
    }

    fn window_of(&self, now: DateTime<Utc>) -> u64 {
        let length = u64::try_from(self.0.rule.window.as_millis()).unwrap_or(u64::MAX).max(1);
        u64::try_from(now.timestamp_millis()).unwrap_or_default() / length
    }

    /// The counter's name in Redis. It holds a keyed hash, because keys are often IP addresses.
    fn name(&self, key: u128, window: u64) -> String {
        let Ok(mac) = Hmac::<Sha256>::new_from_slice(&self.0.pepper) else { return String::new() };
        let tag =
            mac.chain_update(key.to_be_bytes()).chain_update(window.to_be_bytes()).finalize().into_bytes();
        let hash = tag.iter().take(16).fold(0_u128, |hash, byte| hash << 8 | u128::from(*byte));
        format!("{}:meter:{hash:032x}", self.0.prefix)
    }
}
