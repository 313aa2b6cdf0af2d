//! The creation of caches that are measured.

use std::hash::Hash;

use cache::{Bounds, StaleOnErrorCache};

use super::CACHE_EVICTIONS;
use super::caches::{CacheName, register};

impl CacheName {
    /// Returns an empty cache that is measured under this name.
    pub(crate) fn new_cache<K, V>(
        self,
        bounds: Bounds,
        weigher: impl Fn(&K, &V) -> u32 + Send + Sync + 'static,
    ) -> StaleOnErrorCache<K, V>
    where
        K: Hash + Eq + Clone + Send + Sync + 'static,
        V: Clone + Send + Sync + 'static,
    {
        let evictions = &CACHE_EVICTIONS.counters()[self as usize];
        let cache = StaleOnErrorCache::with_eviction_listener(bounds, weigher, || evictions.add(1));
        register(self, Box::new(cache.weight_reader()));
        cache
    }
}
