//! A keyed admission limiter: a limit of permits in total, a limit per key, and a bounded time in the queue.
//!
//! A caller first waits for a permit of its key and then for one of the total. So requests of one key queue behind
//! each other, and a busy key takes no more than its share of the slots or of the queue for them.

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// `max_concurrent` of a limiter that limits each key only.
pub const UNLIMITED: usize = Semaphore::MAX_PERMITS;

/// Admits at most `max_concurrent` callers, of which at most `max_per_key` have the same key. Clones share the
/// permits. Memory is bounded by the number of keys with a permit or a waiting caller.
pub struct Admission<K: Hash + Eq>(Arc<Shared<K>>);

struct Shared<K> {
    total: Arc<Semaphore>,
    max_per_key: usize,
    queue_timeout: Duration,
    keys: Mutex<HashMap<K, Key>>,
}

struct Key {
    semaphore: Arc<Semaphore>,
    /// Permits and waiting callers of this key.
    users: usize,
}

/// A permit of a key and of the total. Dropping it releases both.
#[derive(Debug)]
pub struct Permit<K: Hash + Eq> {
    // Field order is drop order: the key's permit is returned before its entry may be removed.
    _total: OwnedSemaphorePermit,
    _per_key: OwnedSemaphorePermit,
    _entry: KeyEntry<K>,
}

/// No permit became free within the queue timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no permit became free within the queue timeout")]
pub struct Timeout;

/// A rejection by [`Admission::acquire_queued`] or [`Admission::acquire_without_key_queue`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejected {
    /// The key holds and waits for as many permits as it may.
    #[error("the key has all its permits and places in the queue")]
    KeyLimit,
    /// No permit of the total became free in time.
    #[error(transparent)]
    Timeout(#[from] Timeout),
}

/// A permit or a waiting caller of a key. The last one removes the key from the map.
struct KeyEntry<K: Hash + Eq> {
    shared: Arc<Shared<K>>,
    key: K,
    semaphore: Arc<Semaphore>,
}

impl<K: Hash + Eq> Clone for Admission<K> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<K: Hash + Eq + Clone> Admission<K> {
    /// A limiter without callers. A `max_concurrent` of 0 admits no caller, a `max_per_key` of 0 counts as 1.
    #[must_use]
    pub fn new(max_concurrent: usize, max_per_key: usize, queue_timeout: Duration) -> Self {
        Self(Arc::new(Shared {
            total: Arc::new(Semaphore::new(max_concurrent)),
            max_per_key: max_per_key.max(1),
            queue_timeout,
            keys: Mutex::default(),
        }))
    }

    /// Waits for a permit of this key, at most `queue_timeout` in all. First come, first served.
    pub async fn acquire(&self, key: K) -> Result<Permit<K>, Timeout> {
        self.wait(KeyEntry::new(&self.0, key)).await
    }

    /// Like [`Self::acquire`], but rejects the caller at once if `max_queued` callers of its key wait already.
    pub async fn acquire_queued(&self, key: K, max_queued: usize) -> Result<Permit<K>, Rejected> {
        let entry = KeyEntry::new(&self.0, key);
        if entry.users() > self.0.max_per_key.saturating_add(max_queued) {
            return Err(Rejected::KeyLimit);
        }
        Ok(self.wait(entry).await?)
    }

    /// Like [`Self::acquire`], but rejects the caller at once if the key has all its permits. A caller that waits for
    /// a permit of the total counts towards its key's limit.
    pub async fn acquire_without_key_queue(&self, key: K) -> Result<Permit<K>, Rejected> {
        let entry = KeyEntry::new(&self.0, key);
        let per_key = Arc::clone(&entry.semaphore).try_acquire_owned().map_err(|_full| Rejected::KeyLimit)?;
        let permit = tokio::time::timeout(self.0.queue_timeout, self.total(per_key, entry)).await;
        Ok(permit.map_err(|_elapsed| Timeout)??)
    }

    async fn wait(&self, entry: KeyEntry<K>) -> Result<Permit<K>, Timeout> {
        let acquire = async {
            let per_key = Arc::clone(&entry.semaphore).acquire_owned().await.map_err(|_closed| Timeout)?;
            self.total(per_key, entry).await
        };
        tokio::time::timeout(self.0.queue_timeout, acquire).await.map_err(|_elapsed| Timeout)?
    }

    async fn total(&self, per_key: OwnedSemaphorePermit, entry: KeyEntry<K>) -> Result<Permit<K>, Timeout> {
        // The semaphores are never closed, so acquiring fails only by timeout.
        let total = Arc::clone(&self.0.total).acquire_owned().await.map_err(|_closed| Timeout)?;
        Ok(Permit { _total: total, _per_key: per_key, _entry: entry })
    }
}

impl<K: Hash + Eq> fmt::Debug for Admission<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys = self.0.keys().len();
        f.debug_struct("Admission").field("total", &self.0.total).field("keys", &keys).finish_non_exhaustive()
    }
}

impl<K: Hash + Eq> fmt::Debug for KeyEntry<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyEntry").field("semaphore", &self.semaphore).finish_non_exhaustive()
    }
}

impl<K> Shared<K> {
    fn keys(&self) -> MutexGuard<'_, HashMap<K, Key>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Hash + Eq + Clone> KeyEntry<K> {
    fn new(shared: &Arc<Shared<K>>, key: K) -> Self {
        let mut keys = shared.keys();
        let new = || Key { semaphore: Arc::new(Semaphore::new(shared.max_per_key)), users: 0 };
        let entry = keys.entry(key.clone()).or_insert_with(new);
        entry.users += 1;
        Self { shared: Arc::clone(shared), key, semaphore: Arc::clone(&entry.semaphore) }
    }

    /// Permits and waiting callers of the key, this one included.
    fn users(&self) -> usize {
        self.shared.keys().get(&self.key).map_or(0, |entry| entry.users)
    }
}

impl<K: Hash + Eq> Drop for KeyEntry<K> {
    fn drop(&mut self) {
        let mut keys = self.shared.keys();
        if let Some(entry) = keys.get_mut(&self.key) {
            entry.users -= 1;
            if entry.users == 0 {
                keys.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::Poll;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);
    const SHORT: Duration = Duration::from_millis(20);

    async fn is_pending<T>(mut future: std::pin::Pin<&mut impl Future<Output = T>>) -> bool {
        std::future::poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx).is_pending())).await
    }

    #[tokio::test]
    async fn a_busy_key_leaves_permits_to_others_and_the_total_holds() {
        let admission = Admission::new(3, 2, SHORT);
        let first = admission.acquire("busy").await.unwrap();
        let _second = admission.acquire("busy").await.unwrap();
        assert_eq!(admission.acquire("busy").await.unwrap_err(), Timeout);
        let _other = admission.acquire("other").await.unwrap();
        assert_eq!(admission.acquire("third").await.unwrap_err(), Timeout);
        drop(first);
        admission.acquire("busy").await.unwrap();
    }

    #[tokio::test]
    async fn a_waiting_caller_of_a_busy_key_does_not_block_other_keys() {
        let admission = Admission::new(2, 1, LONG);
        let first = admission.acquire("busy").await.unwrap();
        let mut waiting = pin!(admission.acquire("busy"));
        assert!(is_pending(waiting.as_mut()).await);
        drop(admission.acquire("other").await.unwrap());
        drop(first);
        waiting.await.unwrap();
    }

    #[tokio::test]
    async fn callers_of_a_key_are_admitted_in_order() {
        let admission = Admission::new(UNLIMITED, 1, LONG);
        let held = admission.acquire(1).await.unwrap();
        let (mut second, mut third) = (pin!(admission.acquire(1)), pin!(admission.acquire(1)));
        assert!(is_pending(second.as_mut()).await && is_pending(third.as_mut()).await);
        drop(held);
        assert!(is_pending(third.as_mut()).await, "the second is first in the queue");
        drop(second.await.unwrap());
        third.await.unwrap();
    }

    #[tokio::test]
    async fn without_a_key_queue_a_full_key_is_rejected_at_once() {
        let admission = Admission::new(1, 2, SHORT);
        let held = admission.acquire_without_key_queue("a").await.unwrap();
        {
            let mut waiting = pin!(admission.acquire_without_key_queue("a"));
            assert!(is_pending(waiting.as_mut()).await, "it waits for the total");
            let rejected = admission.acquire_without_key_queue("a").await.unwrap_err();
            assert_eq!(rejected, Rejected::KeyLimit, "a waiting caller counts towards its key's limit");
            assert_eq!(waiting.await.unwrap_err(), Rejected::Timeout(Timeout));
        }
        drop(held);
        admission.acquire_without_key_queue("a").await.unwrap();
    }

    #[tokio::test]
    async fn a_caller_beyond_the_queue_of_its_key_is_rejected_at_once() {
        let admission = Admission::new(UNLIMITED, 1, LONG);
        let held = admission.acquire_queued("a", 1).await.unwrap();
        let mut waiting = pin!(admission.acquire_queued("a", 1));
        assert!(is_pending(waiting.as_mut()).await);
        assert_eq!(admission.acquire_queued("a", 1).await.unwrap_err(), Rejected::KeyLimit);
        drop(admission.acquire_queued("b", 1).await.unwrap());
        drop(held);
        drop(waiting.await.unwrap());
        admission.acquire_queued("a", 0).await.unwrap();
    }

    #[tokio::test]
    async fn keys_without_permits_and_callers_take_no_memory() {
        let admission = Admission::new(10, 1, LONG);
        for key in 0..100 {
            drop(admission.acquire(key).await.unwrap());
        }
        assert!(admission.0.keys().is_empty());
        let held = admission.acquire(1).await.unwrap();
        {
            let mut cancelled = pin!(admission.acquire(1));
            assert!(is_pending(cancelled.as_mut()).await);
        }
        assert_eq!(admission.0.keys().len(), 1);
        drop(held);
        assert!(admission.0.keys().is_empty(), "a caller that gave up leaves no entry");

        let admission = Admission::new(1, 1, LONG);
        let held = admission.acquire(1).await.unwrap();
        {
            let mut cancelled = pin!(admission.acquire(2));
            assert!(is_pending(cancelled.as_mut()).await, "it waits for the total");
        }
        assert_eq!(admission.0.keys().len(), 1);
        drop(held);
        drop(admission.acquire(2).await.unwrap());
        assert!(admission.0.keys().is_empty());
    }

    #[tokio::test]
    async fn a_permit_may_move_to_another_thread() {
        let admission = Admission::new(1, 1, SHORT);
        let permit = admission.acquire(1).await.unwrap();
        tokio::task::spawn_blocking(move || drop(permit)).await.unwrap();
        admission.acquire(1).await.unwrap();
    }
}
