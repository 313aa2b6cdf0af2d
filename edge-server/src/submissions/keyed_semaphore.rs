//! Turns by whose they are: so many at a time of each, and who waits for one's waits for nobody else.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use uuid::Uuid;

/// Who takes turns, and how many at a time of each. Lines that nobody stands in take no memory.
pub(super) struct KeyedSemaphore {
    at_a_time: usize,
    lines: Mutex<HashMap<Uuid, Arc<Semaphore>>>,
}

/// Somebody's turn, until it is dropped.
pub(super) struct KeyedPermit {
    /// Given back before the place is left: its line may be the last to know of it.
    _permit: Option<OwnedSemaphorePermit>,
    _place: Place,
}

/// A place in a line.
struct Place {
    turns: Arc<KeyedSemaphore>,
    of: Uuid,
    line: Arc<Semaphore>,
}

impl KeyedSemaphore {
    pub(super) fn new(at_a_time: usize) -> Arc<Self> {
        Arc::new(Self { at_a_time: at_a_time.max(1), lines: Mutex::default() })
    }

    /// The next turn of `of`, as long as that may take.
    pub(super) async fn next(self: &Arc<Self>, of: Uuid) -> KeyedPermit {
        let line = {
            let mut lines = self.lines();
            Arc::clone(lines.entry(of).or_insert_with(|| Arc::new(Semaphore::new(self.at_a_time))))
        };
        let place = Place { turns: Arc::clone(self), of, line };
        // No line is ever closed.
        let permit = Arc::clone(&place.line).acquire_owned().await.ok();
        KeyedPermit { _permit: permit, _place: place }
    }

    fn lines(&self) -> MutexGuard<'_, HashMap<Uuid, Arc<Semaphore>>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut lines = self.turns.lines();
        // The map's and this one: nobody else stands there, and while the map is locked nobody comes.
        if Arc::strong_count(&self.line) <= 2 {
            lines.remove(&self.of);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures::poll;

    use super::*;

    const ONE: Uuid = Uuid::from_u128(1);

    #[tokio::test]
    async fn so_many_of_one_have_their_turn_and_the_others_have_theirs() {
        let turns = KeyedSemaphore::new(2);
        let first = turns.next(ONE).await;
        let _second = turns.next(ONE).await;
        let mut third = pin!(turns.next(ONE));
        assert!(poll!(third.as_mut()).is_pending());
        let _other = turns.next(Uuid::from_u128(2)).await;
        drop(first);
        assert!(poll!(third).is_ready());
    }

    #[tokio::test]
    async fn a_line_goes_with_the_last_who_stood_in_it_though_they_gave_up() {
        let turns = KeyedSemaphore::new(1);
        let first = turns.next(ONE).await;
        {
            let mut gives_up = pin!(turns.next(ONE));
            assert!(poll!(gives_up.as_mut()).is_pending());
        }
        assert_eq!(turns.lines().len(), 1);
        drop(first);
        assert!(turns.lines().is_empty());
    }
}
