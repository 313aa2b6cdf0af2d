//! The cache: fresh values, single-flight reloads, and stale values as the fallback of a failed reload.

use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use equivalent::Equivalent;
use moka::notification::RemovalCause;

use super::entry::Entry;
use super::in_flight::{InFlightLoads, Leader, LoadResult, Role};

/// The size and age limits of a cache.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Maximum total weight of the entries, as the weigher measures it.
    pub max_bytes: u64,
    /// Age from which a value must be reloaded before use.
    pub max_age: Duration,
    /// Time after a failed reload during which the stale value is returned without another attempt.
    pub retry_interval: Duration,
}

/// A value and its source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served<V> {
    pub value: V,
    /// The value may be out of date: its reload failed.
    pub stale: bool,
    /// The value came from the cache: this call loaded nothing.
    pub hit: bool,
}

/// A stale-on-error cache. Returns the cached value while it is fresh; otherwise one caller reloads it and concurrent
/// callers wait. If the reload fails, returns the old value marked stale. Clones share the cache. It also caches absence,
/// if `V` is an `Option`.
pub struct StaleOnErrorCache<K, V> {
    entries: moka::sync::Cache<K, Arc<Entry<V>>>,
    loads: Arc<InFlightLoads<K>>,
    /// Entries of an earlier epoch are stale.
    epoch: Arc<AtomicU64>,
    /// Maximum age in milliseconds: that of `bounds`, or a lower limit.
    max_age_ms: Arc<AtomicU64>,
    bounds: Bounds,
}

impl<K, V> Clone for StaleOnErrorCache<K, V> {
    fn clone(&self) -> Self {
        Self {
            entries: self.entries.clone(),
            loads: Arc::clone(&self.loads),
            epoch: Arc::clone(&self.epoch),
            max_age_ms: Arc::clone(&self.max_age_ms),
            bounds: self.bounds,
        }
    }
}

impl<K, V> StaleOnErrorCache<K, V>
where
    K: Hash + Eq + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    /// An empty cache. `weigher` returns the weight of an entry in bytes.
    pub fn new(bounds: Bounds, weigher: impl Fn(&K, &V) -> u32 + Send + Sync + 'static) -> Self {
        Self::with_eviction_listener(bounds, weigher, || {})
    }

    /// Like [`Self::new`]. `on_eviction` is called for each entry that leaves because the cache is full, a new entry that is
    /// not accepted for that reason included, and for no entry that was invalidated, removed or replaced.
    pub fn with_eviction_listener(
        bounds: Bounds,
        weigher: impl Fn(&K, &V) -> u32 + Send + Sync + 'static,
        on_eviction: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        let entries = moka::sync::Cache::builder()
            .max_capacity(bounds.max_bytes)
            .weigher(move |key, entry: &Arc<Entry<V>>| weigher(key, &entry.value))
            .eviction_listener(move |_, _, cause| {
                if cause == RemovalCause::Size {
                    on_eviction();
                }
            })
            .build();
        let max_age_ms = Arc::new(AtomicU64::new(milliseconds(bounds.max_age)));
        Self { entries, loads: Arc::default(), epoch: Arc::default(), max_age_ms, bounds }
    }

    /// Returns the value if it is cached and fresh. Never waits, and allocates only what `V::clone` needs.
    pub fn peek<Q>(&self, key: &Q, now: Instant) -> Option<V>
    where
        Q: Equivalent<K> + Hash + ?Sized,
    {
        self.peek_with_expiry(key, now).map(|(value, _)| value)
    }

    /// Like [`Self::peek`], with the time at which the value expires unless it is invalidated before.
    pub fn peek_with_expiry<Q>(&self, key: &Q, now: Instant) -> Option<(V, Instant)>
    where
        Q: Equivalent<K> + Hash + ?Sized,
    {
        let entry = self.entries.get(key)?;
        let max_age = self.max_age();
        let is_fresh = entry.is_fresh(now, self.epoch(), max_age);
        is_fresh.then(|| (entry.value.clone(), entry.expires_at(max_age)))
    }

    /// Returns the cached value, fresh or stale. For reloads that can reuse an unchanged value.
    pub fn peek_stale<Q>(&self, key: &Q) -> Option<V>
    where
        Q: Equivalent<K> + Hash + ?Sized,
    {
        self.entries.get(key).map(|entry| entry.value.clone())
    }

    /// Replaces a cached value for which `is_same` holds by another form of it, with the same age and state. Returns
    /// `false` and changes nothing if the key has another value or none.
    pub fn replace_if(&self, key: &K, is_same: impl FnOnce(&V) -> bool, value: V) -> bool {
        // Under the lock of invalidations, so that none is undone.
        self.loads.with_lock(|| {
            let cached = self.entries.get(key).filter(|entry| is_same(&entry.value));
            let replaced = cached.map(|entry| Arc::new(entry.with(value)));
            replaced.map(|entry| self.entries.insert(key.clone(), entry)).is_some()
        })
    }

    /// Returns the value: fresh from the cache, else from `load`, else, if that fails, the stale one. Fails with `load`'s
    /// error only if no value is cached.
    ///
    /// Of concurrent callers of a key, one loads and the others wait. A value with a load that began before an
    /// invalidation is returned to the callers that were already waiting, but never counts as fresh.
    pub async fn get<E, F>(&self, key: &K, now: Instant, load: F) -> Result<Served<V>, E>
    where
        F: Future<Output = Result<V, E>>,
    {
        loop {
            if let Some(served) = self.served(key, now) {
                return Ok(served);
            }
            match self.loads.join(key) {
                Role::Leader(leader) => return self.lead(key, now, load, leader).await,
                Role::Follower(follower) => {
                    if follower.failed().await {
                        return self.after_failed_load(key, now, load).await;
                    }
                }
            }
        }
    }

    /// Marks a value stale: it is reloaded before its next use.
    pub fn invalidate(&self, key: &K) {
        self.loads.mark_stale(key, || {
            if let Some(entry) = self.entries.get(key) {
                entry.mark_stale();
            }
        });
    }

    /// Marks every value stale for which `matches` holds.
    pub fn invalidate_where(&self, matches: impl Fn(&K, &V) -> bool) {
        // A value in flight can't be inspected yet, so every load counts as a match.
        self.loads.mark_all_stale(|| {
            for (key, entry) in &self.entries {
                if matches(&key, &entry.value) {
                    entry.mark_stale();
                }
            }
        });
    }

    /// Marks every value stale.
    pub fn mark_all_stale(&self) {
        self.epoch.fetch_add(1, Ordering::SeqCst);
    }

    /// Lowers the maximum age to `limit` for as long as invalidations do not arrive; `None` restores that of [`Bounds`].
    /// It applies to values that are cached already.
    pub fn limit_age(&self, limit: Option<Duration>) {
        let max_age = limit.map_or(self.bounds.max_age, |limit| limit.min(self.bounds.max_age));
        self.max_age_ms.store(milliseconds(max_age), Ordering::SeqCst);
    }

    /// The age from which a value is reloaded before use.
    #[must_use]
    pub fn max_age(&self) -> Duration {
        Duration::from_millis(self.max_age_ms.load(Ordering::Relaxed))
    }

    /// Removes a value that must not be served again, not even stale: it was deleted or suspended.
    pub fn remove(&self, key: &K) {
        self.loads.mark_removed(key, || self.entries.invalidate(key));
    }

    /// Removes every value for which `matches` holds.
    pub fn remove_where(&self, matches: impl Fn(&K, &V) -> bool) {
        self.loads.mark_all_removed(|| {
            for (key, entry) in &self.entries {
                if matches(&key, &entry.value) {
                    self.entries.invalidate(&*key);
                }
            }
        });
    }

    /// The approximate total weight of the entries.
    #[must_use]
    pub fn weight_bytes(&self) -> u64 {
        self.entries.run_pending_tasks();
        self.entries.weighted_size()
    }

    /// Returns a function for [`Self::weight_bytes`] that does not keep the entries in memory for longer than the cache: it
    /// returns `None` once the last clone is dropped, and is to be dropped then.
    pub fn weight_reader(&self) -> impl Fn() -> Option<u64> + Send + Sync + use<K, V> {
        let (entries, loads) = (self.entries.clone(), Arc::downgrade(&self.loads));
        move || {
            (loads.strong_count() > 0).then(|| {
                entries.run_pending_tasks();
                entries.weighted_size()
            })
        }
    }

    /// Returns a value that needs no load: a fresh one, or a stale one after a recent failed reload.
    fn served(&self, key: &K, now: Instant) -> Option<Served<V>> {
        let entry = self.entries.get(key)?;
        let stale = !entry.is_fresh(now, self.epoch(), self.max_age());
        let usable = !stale || entry.failed_recently(now, self.epoch(), self.bounds.retry_interval);
        usable.then(|| Served { value: entry.value.clone(), stale, hit: true })
    }

    async fn lead<E, F>(&self, key: &K, now: Instant, load: F, leader: Leader<K>) -> Result<Served<V>, E>
    where
        F: Future<Output = Result<V, E>>,
    {
        let epoch = self.epoch();
        match load.await {
            Ok(value) => {
                let entry = Arc::new(Entry::new(value.clone(), now, epoch));
                leader.complete(|result| {
                    if result == LoadResult::Stale {
                        entry.mark_stale();
                    }
                    if result != LoadResult::Removed {
                        self.entries.insert(key.clone(), entry);
                    }
                });
                Ok(Served { value, stale: false, hit: false })
            }
            Err(error) => {
                let entry = self.entries.get(key);
                if let Some(entry) = &entry {
                    entry.record_failure(now, epoch);
                }
                leader.fail();
                entry.map(|entry| Served { value: entry.value.clone(), stale: true, hit: true }).ok_or(error)
            }
        }
    }

    /// Returns the stale value after another caller's load failed, else loads the value without caching it. Queueing
    /// callers to fail one after the other would take far longer.
    async fn after_failed_load<E, F>(&self, key: &K, now: Instant, load: F) -> Result<Served<V>, E>
    where
        F: Future<Output = Result<V, E>>,
    {
        if let Some(entry) = self.entries.get(key) {
            let stale = !entry.is_fresh(now, self.epoch(), self.max_age());
            return Ok(Served { value: entry.value.clone(), stale, hit: true });
        }
        load.await.map(|value| Served { value, stale: false, hit: false })
    }

    fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::SeqCst)
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
