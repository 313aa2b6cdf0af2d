//! Values that cost something to work out and never change: kept while they are in use, made again when forgotten.

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
    /// An empty one.
    pub fn new(most_entries: u64) -> Self {
        Self(moka::sync::Cache::new(most_entries))
    }

    /// The value; made now if it isn't here. Of callers at the same moment each may make it.
    pub fn get_or<Q>(&self, key: &Q, make: impl FnOnce() -> V) -> V
    where
        Q: Equivalent<K> + Hash + ToOwned<Owned = K> + ?Sized,
    {
        self.0.get(key).unwrap_or_else(|| {
            let made = make();
            self.0.insert(key.to_owned(), made.clone());
            made
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_made_once_while_it_is_kept() {
        let memo: Memo<String, usize> = Memo::new(10);
        assert_eq!(memo.get_or("four", || 4), 4);
        assert_eq!(memo.get_or("four", || 5), 4);
    }
}
