//! Webhooks with due deliveries, or accounts with due runs, as far as this process knows from bus signals and periodic
//! polls. All of them take turns.

use std::collections::{HashMap, HashSet, VecDeque};

use uuid::Uuid;

/// Ids that may have due work, in the order in which they are served.
#[derive(Debug, Default)]
pub(crate) struct DueIds {
    queue: VecDeque<Uuid>,
    queued: HashSet<Uuid>,
}

/// Which ids may be due after a bus event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DueSignal {
    /// No further ones.
    None,
    /// Those that the event named; they are queued.
    Some,
    /// Any: a poll is needed.
    Any,
}

impl DueIds {
    /// Replaces the queue's content by the result of a poll. Those that were already queued keep their position.
    pub(crate) fn replace(&mut self, due: Vec<Uuid>) {
        self.queued = due.iter().copied().collect();
        self.queue.retain(|id| self.queued.contains(id));
        let present: HashSet<Uuid> = self.queue.iter().copied().collect();
        self.queue.extend(due.into_iter().filter(|id| !present.contains(id)));
    }

    /// Moves the ids of a claim to the back, and removes those with less due work than their limit. `limits` are pairs
    /// of id and limit, `claimed` has an id for each claimed piece of work.
    pub(crate) fn record_claim(
        &mut self,
        limits: impl Iterator<Item = (Uuid, i32)>,
        claimed: impl Iterator<Item = Uuid>,
    ) {
        let mut counts: HashMap<Uuid, usize> = HashMap::new();
        claimed.for_each(|id| *counts.entry(id).or_default() += 1);
        let limits: HashMap<Uuid, i32> = limits.collect();
        let mut served = Vec::with_capacity(limits.len());
        self.queue.retain(|id| {
            let is_served = limits.contains_key(id);
            served.extend(is_served.then_some(*id));
            !is_served
        });
        for id in served {
            let claimed = counts.get(&id).copied().unwrap_or_default();
            if limits
                .get(&id)
                .is_some_and(|limit| usize::try_from(*limit).is_ok_and(|places| claimed < places))
            {
                self.queued.remove(&id);
            } else {
                self.queue.push_back(id);
            }
        }
    }

    /// Returns all ids, the one that has waited longest first.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = Uuid> {
        self.queue.iter().copied()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Queues an id, unless it is queued.
    pub(crate) fn enqueue(&mut self, id: Uuid) {
        if self.queued.insert(id) {
            self.queue.push_back(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Uuid = Uuid::from_u128(1);
    const TWO: Uuid = Uuid::from_u128(2);
    const THREE: Uuid = Uuid::from_u128(3);

    fn due(ids: &[Uuid]) -> DueIds {
        let mut due = DueIds::default();
        ids.iter().for_each(|id| due.enqueue(*id));
        due
    }

    fn queue(due: &DueIds) -> Vec<Uuid> {
        due.iter().collect()
    }

    #[test]
    fn an_id_is_queued_once() {
        assert_eq!(queue(&due(&[TWO, ONE, ONE])), [TWO, ONE]);
    }

    #[test]
    fn a_poll_adds_and_removes_ids_and_keeps_their_order() {
        let mut due = due(&[THREE, TWO]);
        due.replace(vec![ONE, THREE]);
        assert_eq!(queue(&due), [THREE, ONE]);
        [TWO, ONE].into_iter().for_each(|id| due.enqueue(id));
        assert_eq!(queue(&due), [THREE, ONE, TWO]);
    }

    #[test]
    fn an_id_at_its_limit_moves_back_and_one_below_its_limit_leaves() {
        let mut due = due(&[ONE, TWO, THREE]);
        due.record_claim([(ONE, 1), (TWO, 2)].into_iter(), [ONE, TWO].into_iter());
        assert_eq!(queue(&due), [THREE, ONE], "the second of them had no more due work");
        due.enqueue(TWO);
        assert_eq!(queue(&due), [THREE, ONE, TWO], "and can be queued again");
    }
}
