//! The handshakes in progress, up to a limit.
//!
//! A client that sends its hello and nothing more has a slot until the timeout. A few addresses could take all slots that way.
//! So while others wait, the oldest handshakes with silent clients are closed.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, Semaphore, SemaphorePermit};
use tokio::time::timeout;

/// Age from which a handshake may be closed for another one.
const MIN_AGE: Duration = Duration::from_secs(1);
/// Interval at which a waiting handshake closes another one.
const CLOSE_INTERVAL: Duration = Duration::from_millis(100);

/// Slots for handshakes. Waiting ones get them in order.
pub(super) struct HandshakeSlots {
    permits: Semaphore,
    started: Mutex<Started>,
}

#[derive(Default)]
struct Started {
    next_id: u64,
    /// The oldest first.
    by_id: BTreeMap<u64, (Instant, Arc<Notify>)>,
}

/// A slot, which is released on drop.
pub(super) struct HandshakeSlot<'a> {
    slots: &'a HandshakeSlots,
    id: u64,
    closed: Arc<Notify>,
    _permit: Option<SemaphorePermit<'a>>,
}

impl HandshakeSlots {
    pub(super) fn new(count: usize) -> Self {
        let permits = Semaphore::new(count.clamp(1, Semaphore::MAX_PERMITS));
        Self { permits, started: Mutex::default() }
    }

    /// Waits for a slot.
    pub(super) async fn acquire(&self) -> HandshakeSlot<'_> {
        let mut acquired = pin!(self.permits.acquire());
        let permit = loop {
            match timeout(CLOSE_INTERVAL, acquired.as_mut()).await {
                Ok(permit) => break permit.ok(),
                Err(_elapsed) => self.close_oldest(Instant::now()),
            }
        };
        let closed = Arc::new(Notify::new());
        let mut started = self.started();
        started.next_id += 1;
        let id = started.next_id;
        started.by_id.insert(id, (Instant::now(), Arc::clone(&closed)));
        HandshakeSlot { slots: self, id, closed, _permit: permit }
    }

    fn close_oldest(&self, now: Instant) {
        let mut started = self.started();
        let Some(oldest) = started.by_id.first_entry() else { return };
        if now.saturating_duration_since(oldest.get().0) >= MIN_AGE {
            oldest.remove().1.notify_one();
        }
    }

    fn started(&self) -> MutexGuard<'_, Started> {
        self.started.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HandshakeSlot<'_> {
    /// Runs a handshake. Returns `None` if it is closed for another one. It goes on if its client's next message has arrived
    /// and was not read yet: on an overloaded machine no client is silent.
    pub(super) async fn run<T>(&self, handshake: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            done = handshake => Some(done),
            () = self.closed.notified() => None,
        }
    }
}

impl Drop for HandshakeSlot<'_> {
    fn drop(&mut self) {
        self.slots.started().by_id.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    #[tokio::test]
    async fn the_oldest_silent_handshake_is_closed_for_a_waiting_one() {
        let slots = HandshakeSlots::new(2);
        let (oldest, newer) = (slots.acquire().await, slots.acquire().await);
        let silent = async {
            let closed = oldest.run(pending::<()>()).await;
            drop(oldest);
            closed
        };
        let (closed, third) = tokio::join!(silent, slots.acquire());
        assert_eq!(closed, None);
        assert_eq!(newer.run(ready(1)).await, Some(1));
        drop((newer, third));
        assert!(slots.started().by_id.is_empty() && slots.permits.available_permits() == 2);
    }

    #[tokio::test]
    async fn a_handshake_goes_on_if_its_clients_message_has_arrived() {
        let slots = HandshakeSlots::new(1);
        let slot = slots.acquire().await;
        slots.close_oldest(Instant::now());
        assert!(slots.started().by_id.len() == 1, "it is too young");
        slots.close_oldest(Instant::now() + MIN_AGE);
        assert_eq!(slot.run(ready(1)).await, Some(1));
    }
}
