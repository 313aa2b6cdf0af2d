//! Values kept in this process that are fresh, or else reloaded before they are used, or else, when they can't be,
//! served stale and marked so. That last step is what keeps a warm page up while every store is down.

mod entry;
mod in_flight;

use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use entry::Entry;
use equivalent::Equivalent;
use in_flight::{InFlightLoads, Role};

/// How much is kept and for how long it counts.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The weight of everything kept, by the weigher's measure.
    pub max_bytes: u64,
    /// How long after it was loaded a value may be used without asking again.
    pub max_age: Duration,
    /// How long after a failed reload the stale value is served without trying again.
    pub retry_interval: Duration,
}

/// A value and how it was come by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Served<V> {
    /// The value.
    pub value: V,
    /// It may be out of date: it should have been reloaded, and that failed.
    pub stale: bool,
    /// It was here; nothing was loaded for this call.
    pub hit: bool,
}

/// A cache of values by key. Clones share it. Absence is cached too, where `V` is an `Option`.
pub struct StaleOnErrorCache<K, V> {
    values: moka::sync::Cache<K, Arc<Entry<V>>>,
    in_flight: Arc<InFlightLoads<K>>,
    /// Values of an earlier epoch are stale.
    epoch: Arc<AtomicU64>,
    bounds: Bounds,
}

impl<K, V> Clone for StaleOnErrorCache<K, V> {
    fn clone(&self) -> Self {
        Self {
            values: self.values.clone(),
            in_flight: Arc::clone(&self.in_flight),
            epoch: Arc::clone(&self.epoch),
            bounds: self.bounds,
        }
    }
}

impl<K, V> StaleOnErrorCache<K, V>
where
    K: Hash + Eq + Clone + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    /// An empty cache; `weigher` says what an entry weighs, in bytes.
    pub fn new(bounds: Bounds, weigher: impl Fn(&K, &V) -> u32 + Send + Sync + 'static) -> Self {
        let values = moka::sync::Cache::builder()
            .max_capacity(bounds.max_bytes)
            .weigher(move |key, stored: &Arc<Entry<V>>| weigher(key, &stored.value))
            .build();
        Self { values, in_flight: Arc::default(), epoch: Arc::default(), bounds }
    }

    /// The value if it is here and fresh: no waiting, no allocation but what `V::clone` needs.
    pub fn peek<Q>(&self, key: &Q, now: Instant) -> Option<V>
    where
        Q: Equivalent<K> + Hash + ?Sized,
    {
        self.peek_with_expiry(key, now).map(|(value, _)| value)
    }

    /// The same, with the time at which it is no longer fresh, whatever happens.
    pub fn peek_with_expiry<Q>(&self, key: &Q, now: Instant) -> Option<(V, Instant)>
    where
        Q: Equivalent<K> + Hash + ?Sized,
    {
        let stored = self.values.get(key)?;
        let is_fresh = stored.is_fresh(now, self.epoch(), self.bounds.max_age);
        is_fresh.then(|| (stored.value.clone(), stored.expires_at(self.bounds.max_age)))
    }

    /// What is here, fresh or not. For those who reload and find that nothing has changed.
    pub fn peek_stale<Q>(&self, key: &Q) -> Option<V>
    where
        Q: Equivalent<K> + Hash + ?Sized,
    {
        self.values.get(key).map(|stored| stored.value.clone())
    }

    /// Puts `revised` in the place of a value that is still here, `is_it` says: the same in another form, as old
    /// and as fresh as it was. `false` and nothing changed if another has come, or it is gone.
    pub fn replace_if(&self, key: &K, is_it: impl FnOnce(&V) -> bool, revised: V) -> bool {
        // Under the lock that those take who remove and mark_stale: neither is undone.
        self.in_flight.with_lock(|| {
            let here = self.values.get(key).filter(|stored| is_it(&stored.value));
            let revised = here.map(|stored| Arc::new(stored.with(revised)));
            revised.map(|stored| self.values.insert(key.clone(), stored)).is_some()
        })
    }

    /// The value: fresh from here, or from `load`, or if that fails what was here before, marked stale.
    ///
    /// Of many callers of one key at a time, one loads and the rest wait for it. A value whose loading began
    /// before the key was invalidated is given to those who were already asking, and never counts as fresh.
    ///
    /// # Errors
    /// `load`'s, if nothing is here to serve instead.
    pub async fn get<E, F>(&self, key: &K, now: Instant, load: F) -> Result<Served<V>, E>
    where
        F: Future<Output = Result<V, E>>,
    {
        loop {
            if let Some(served) = self.served(key, now) {
                return Ok(served);
            }
            match self.in_flight.join(key) {
                Role::Leader(flight) => return self.lead(key, now, load, flight).await,
                Role::Follower(flight) => {
                    if flight.failed().await {
                        return self.after_failed_load(key, now, load).await;
                    }
                }
            }
        }
    }

    /// This value is out of date: it is loaded again before it is used.
    pub fn invalidate(&self, key: &K) {
        self.in_flight.mark_stale(key, || {
            if let Some(stored) = self.values.get(key) {
                stored.mark_stale();
            }
        });
    }

    /// Every value for which `concerns` holds is out of date.
    pub fn invalidate_where(&self, concerns: impl Fn(&K, &V) -> bool) {
        // What is being loaded can't be looked at yet: all of it counts as concerned.
        self.in_flight.mark_all_stale(|| {
            for (key, stored) in &self.values {
                if concerns(&key, &stored.value) {
                    stored.mark_stale();
                }
            }
        });
    }

    /// Everything here may be out of date.
    pub fn mark_all_stale(&self) {
        self.epoch.fetch_add(1, Ordering::SeqCst);
    }

    /// This value must not be served again, not even stale: it was deleted or suspended.
    pub fn remove(&self, key: &K) {
        self.in_flight.mark_removed(key, || self.values.invalidate(key));
    }

    /// No value for which `concerns` holds may be served again, not even stale.
    pub fn remove_where(&self, concerns: impl Fn(&K, &V) -> bool) {
        self.in_flight.mark_all_removed(|| {
            for (key, stored) in &self.values {
                if concerns(&key, &stored.value) {
                    self.values.invalidate(&*key);
                }
            }
        });
    }

    /// What everything here weighs, roughly.
    #[must_use]
    pub fn weight_bytes(&self) -> u64 {
        self.values.run_pending_tasks();
        self.values.weighted_size()
    }

    /// What can be served without loading: a fresh value, or a stale one whose reload failed a moment ago.
    fn served(&self, key: &K, now: Instant) -> Option<Served<V>> {
        let stored = self.values.get(key)?;
        let stale = !stored.is_fresh(now, self.epoch(), self.bounds.max_age);
        let usable = !stale || stored.failed_recently(now, self.epoch(), self.bounds.retry_interval);
        usable.then(|| Served { value: stored.value.clone(), stale, hit: true })
    }

    async fn lead<E, F>(
        &self,
        key: &K,
        now: Instant,
        load: F,
        flight: in_flight::Leader<K>,
    ) -> Result<Served<V>, E>
    where
        F: Future<Output = Result<V, E>>,
    {
        let epoch = self.epoch();
        match load.await {
            Ok(value) => {
                let stored = Arc::new(Entry::new(value.clone(), now, epoch));
                flight.complete(|outcome| {
                    if outcome.is_stale() {
                        stored.mark_stale();
                    }
                    if !outcome.is_removed() {
                        self.values.insert(key.clone(), stored);
                    }
                });
                Ok(Served { value, stale: false, hit: false })
            }
            Err(error) => {
                let stored = self.values.get(key);
                if let Some(stored) = &stored {
                    stored.record_failure(now, epoch);
                }
                flight.fail();
                stored
                    .map(|stored| Served { value: stored.value.clone(), stale: true, hit: true })
                    .ok_or(error)
            }
        }
    }

    /// After somebody else's load has failed: the stale value, else a load of one's own that isn't kept. Waiting
    /// in line to fail one after the other would take the callers far longer.
    async fn after_failed_load<E, F>(&self, key: &K, now: Instant, load: F) -> Result<Served<V>, E>
    where
        F: Future<Output = Result<V, E>>,
    {
        if let Some(stored) = self.values.get(key) {
            let stale = !stored.is_fresh(now, self.epoch(), self.bounds.max_age);
            return Ok(Served { value: stored.value.clone(), stale, hit: true });
        }
        load.await.map(|value| Served { value, stale: false, hit: false })
    }

    fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::SeqCst)
    }
}

#[cfg(test)]
mod tests;
