//! A cache of computed values that never change.

use std::hash::Hash;

use equivalent::Equivalent;

/// A cache without expiry, bounded by the number of its entries. Clones share it.
#[derive(Clone)]
pub struct Memo<K, V>(moka::sync::Cache<K, V>);

impl<K, V> Memo<K, V>
where
    K: Hash + Eq + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    /// An empty cache of at most `max_entries` values.
    pub fn new(max_entries: u64) -> Self {
        Self(moka::sync::Cache::new(max_entries))
    }

    /// Returns the cached value, or computes and caches it. Concurrent callers may each compute it.
    pub fn get_or<Q>(&self, key: &Q, compute: impl FnOnce() -> V) -> V
    where
        Q: Equivalent<K> + Hash + ToOwned<Owned = K> + ?Sized,
    {
        self.0.get(key).unwrap_or_else(|| {
            let computed = compute();
            self.0.insert(key.to_owned(), computed.clone());
            computed
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cached_value_is_computed_once() {
        let memo: Memo<String, usize> = Memo::new(10);
        assert_eq!(memo.get_or("four", || 4), 4);
        assert_eq!(memo.get_or("four", || 5), 4);
    }
}
