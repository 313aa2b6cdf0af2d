//! Orders the events that left a page together. They travel in requests of their own, so a custom event can arrive before
//! the view of its page, and a visit would get its source and its first event from it.
//!
//! The tracker numbers such events and gives them a random number, their group. One that arrives before its predecessor
//! waits for it, and counts as later by a millisecond at least, because visits order events by their time. If the
//! predecessor went to another collector, the wait alone puts it first. Decision: `docs/0010-order-of-events.md`.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use service::Clock;
use tokio::sync::oneshot;

use crate::incoming_event::IncomingEvent;
use crate::metrics;

/// How long an event waits for its predecessor.
const MAX_WAIT: Duration = Duration::from_millis(500);
/// How long a predecessor is remembered, at least: longer than a group lasts and requests overtake each other.
const MEMORY: TimeDelta = TimeDelta::seconds(5);
/// Upper bound on groups that are remembered for [`MEMORY`]. Beyond it the oldest are forgotten early.
const MAX_GROUPS: usize = 100_000;
/// Upper bound on waiting events. Beyond it events are taken as they arrive.
const MAX_WAITING: usize = 10_000;

/// Orders events. Clones share what arrived.
#[derive(Clone)]
pub(crate) struct OrderEvents {
    clock: Clock,
    /// Its keys are random, so a stranger can't choose colliding groups.
    hasher: RandomState,
    arrivals: Arc<Mutex<Arrivals>>,
}

/// The event of a group with the highest number, and the group's latest time.
#[derive(Debug, Clone, Copy)]
struct Arrival {
    sequence: u16,
    at: DateTime<Utc>,
}

#[derive(Default)]
struct Arrivals {
    /// By group, in two generations: the older one is dropped as a whole.
    young: HashMap<u64, Arrival>,
    old: HashMap<u64, Arrival>,
    /// When the young generation began.
    since: DateTime<Utc>,
    /// Events that wait for the next one of their group.
    waiting: HashMap<u64, Vec<oneshot::Sender<()>>>,
    waiting_count: usize,
}

impl OrderEvents {
    pub(crate) fn new(clock: Clock) -> Self {
        let order = Self { clock, hasher: RandomState::new(), arrivals: Arc::default() };
        order.lock().set_waiting_count(0);
        order
    }

    /// Gives the event its place in time, after its predecessor. Events of the past keep theirs.
    pub(crate) async fn step(&self, event: &mut IncomingEvent, site_token: &str, group: u32, sequence: u16) {
        if event.occurred_at < event.arrived_at {
            return;
        }
        // The visitor's id is not known yet: its day depends on the time. The number that the tracker sends may be equal in
        // two browsers.
        let group = self.hasher.hash_one((site_token, event.ip, &event.user_agent, group));
        if let Some(predecessor) = sequence.checked_sub(1) {
            let earliest = self.after(group, predecessor, event.arrived_at).await;
            event.arrived_at = event.arrived_at.max(earliest);
            event.occurred_at = event.arrived_at;
        }
        self.lock().record(group, Arrival { sequence, at: event.occurred_at });
    }

    /// Waits for the predecessor and returns the earliest time after it. If it does not come in time, that is now, or after
    /// what came of the group.
    async fn after(&self, group: u64, predecessor: u16, arrived_at: DateTime<Utc>) -> DateTime<Utc> {
        let wait = tokio::time::timeout(MAX_WAIT, async {
            loop {
                let next = match self.lock().find_or_wait(group, predecessor, arrived_at) {
                    Ok(found) => return found,
                    Err(next) => next,
                };
                let _forgotten = Waiting { arrivals: &self.arrivals, group };
                // An error means that its sender was dropped, which nothing does before it has sent.
                let _sent = next.await;
            }
        });
        if let Ok(Some(found)) = wait.await {
            return found;
        }
        let last = self.lock().last(group);
        last.map_or(DateTime::UNIX_EPOCH, Arrival::earliest_successor).max(self.clock.now())
    }

    fn lock(&self) -> MutexGuard<'_, Arrivals> {
        self.arrivals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Arrival {
    /// Whether an event at this time may be of the same group. Senders without a group count from 0 again and again.
    fn is_of_group(&self, now: DateTime<Utc>) -> bool {
        now - self.at <= MEMORY
    }

    fn earliest_successor(self) -> DateTime<Utc> {
        self.at + TimeDelta::milliseconds(1)
    }
}

impl Arrivals {
    /// Returns the earliest time after the predecessor (`None` if too many events wait), or the notice of the group's
    /// next event.
    fn find_or_wait(
        &mut self,
        group: u64,
        predecessor: u16,
        now: DateTime<Utc>,
    ) -> Result<Option<DateTime<Utc>>, oneshot::Receiver<()>> {
        let is_predecessor = |last: &Arrival| last.sequence >= predecessor && last.is_of_group(now);
        if let Some(last) = self.last(group).filter(is_predecessor) {
            return Ok(Some(last.earliest_successor()));
        }
        if self.waiting_count >= MAX_WAITING {
            return Ok(None);
        }
        let (notify, next) = oneshot::channel();
        self.waiting.entry(group).or_default().push(notify);
        self.set_waiting_count(self.waiting_count + 1);
        Err(next)
    }

    fn last(&self, group: u64) -> Option<Arrival> {
        self.young.get(&group).or_else(|| self.old.get(&group)).copied()
    }

    fn record(&mut self, group: u64, mut arrival: Arrival) {
        // A late one with a lower number does not make the others wait again.
        if let Some(last) = self.last(group).filter(|last| last.is_of_group(arrival.at)) {
            arrival.sequence = arrival.sequence.max(last.sequence);
            arrival.at = arrival.at.max(last.at);
        }
        if arrival.at - self.since > MEMORY || self.young.len() >= MAX_GROUPS {
            self.old = std::mem::take(&mut self.young);
            self.since = arrival.at;
        }
        self.young.insert(group, arrival);
        let Some(waiting) = self.waiting.remove(&group) else { return };
        self.set_waiting_count(self.waiting_count - waiting.len());
        for notify in waiting {
            // An event that gave up is gone.
            let _gone = notify.send(());
        }
    }

    /// Removes the events of a group that gave up.
    fn forget_closed(&mut self, group: u64) {
        let Some(waiting) = self.waiting.get_mut(&group) else { return };
        let before = waiting.len();
        waiting.retain(|notify| !notify.is_closed());
        let removed = before - waiting.len();
        if waiting.is_empty() {
            self.waiting.remove(&group);
        }
        self.set_waiting_count(self.waiting_count - removed);
    }

    fn set_waiting_count(&mut self, count: usize) {
        self.waiting_count = count;
        metrics::EVENTS_WAITING.set(count as f64, &[]);
    }
}

/// Removes a waiting event when its wait ends.
struct Waiting<'a> {
    arrivals: &'a Mutex<Arrivals>,
    group: u64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.arrivals.lock().unwrap_or_else(PoisonError::into_inner).forget_closed(self.group);
    }
}

#[cfg(test)]
mod tests;
