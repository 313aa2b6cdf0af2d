//! The webhooks that have due deliveries, as far as this process knows from bus signals and periodic polls.

use std::collections::{HashMap, HashSet, VecDeque};

use cache::BusEvent;
use contract::Signal;
use store::deliveries::{Attempt, ClaimLimit};
use uuid::Uuid;

/// Webhooks that may have due deliveries, in the order in which they are served.
#[derive(Debug, Default)]
pub(super) struct DueWebhooks {
    queue: VecDeque<Uuid>,
    queued: HashSet<Uuid>,
}

/// Which webhooks may be due after a bus event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum DueSignal {
    /// No further webhooks.
    None,
    /// The webhooks that the event named; they are queued.
    Some,
    /// Any webhook: a poll is needed.
    Any,
}

impl DueWebhooks {
    /// Queues the webhooks that the event names.
    pub(super) fn receive(&mut self, event: BusEvent<Signal>) -> DueSignal {
        match event {
            BusEvent::Message(Signal::DeliveriesDue { webhook_ids }) if !webhook_ids.is_empty() => {
                webhook_ids.into_iter().for_each(|id| self.enqueue(id));
                DueSignal::Some
            }
            BusEvent::Message(Signal::DeliveriesDue { .. }) | BusEvent::Lagged => DueSignal::Any,
            BusEvent::Message(_) | BusEvent::Disconnected => DueSignal::None,
        }
    }

    /// Replaces the queue's content by the result of a poll. Webhooks that were already queued keep their position.
    pub(super) fn replace(&mut self, due: Vec<Uuid>) {
        self.queued = due.iter().copied().collect();
        self.queue.retain(|id| self.queued.contains(id));
        let present: HashSet<Uuid> = self.queue.iter().copied().collect();
        self.queue.extend(due.into_iter().filter(|id| !present.contains(id)));
    }

    /// Moves the webhooks of a claim to the back, and removes those with fewer due deliveries than their limit.
    pub(super) fn record_claim(&mut self, limits: &[ClaimLimit], attempts: &[Attempt]) {
        let mut claimed: HashMap<Uuid, usize> = HashMap::new();
        for attempt in attempts {
            *claimed.entry(attempt.webhook_id).or_default() += 1;
        }
        let served: HashSet<Uuid> = limits.iter().map(|limit| limit.webhook_id).collect();
        self.queue.retain(|id| !served.contains(id));
        for limit in limits {
            let claimed = claimed.get(&limit.webhook_id).copied().unwrap_or_default();
            if usize::try_from(limit.limit).is_ok_and(|places| claimed < places) {
                self.queued.remove(&limit.webhook_id);
            } else {
                self.queue.push_back(limit.webhook_id);
            }
        }
    }

    /// Returns all webhooks, the one that has waited longest first.
    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = Uuid> {
        self.queue.iter().copied()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    fn enqueue(&mut self, id: Uuid) {
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

    fn due(webhook_ids: &[Uuid]) -> BusEvent<Signal> {
        BusEvent::Message(Signal::DeliveriesDue { webhook_ids: webhook_ids.to_vec() })
    }

    fn queue(webhooks: &DueWebhooks) -> Vec<Uuid> {
        webhooks.iter().collect()
    }

    #[test]
    fn a_named_webhook_is_queued_once() {
        let mut webhooks = DueWebhooks::default();
        assert_eq!(webhooks.receive(due(&[TWO, ONE])), DueSignal::Some);
        assert_eq!(webhooks.receive(due(&[ONE])), DueSignal::Some);
        assert_eq!(queue(&webhooks), [TWO, ONE]);
        assert_eq!(webhooks.receive(BusEvent::Message(Signal::OutboxFilled)), DueSignal::None);
        assert_eq!(webhooks.receive(due(&[])), DueSignal::Any);
        assert_eq!(webhooks.receive(BusEvent::Lagged), DueSignal::Any);
    }

    #[test]
    fn a_poll_adds_and_removes_webhooks_and_keeps_their_order() {
        let mut webhooks = DueWebhooks::default();
        webhooks.receive(due(&[THREE, TWO]));
        webhooks.replace(vec![ONE, THREE]);
        assert_eq!(queue(&webhooks), [THREE, ONE]);
        webhooks.receive(due(&[TWO, ONE]));
        assert_eq!(queue(&webhooks), [THREE, ONE, TWO]);
    }

    #[test]
    fn a_webhook_at_its_limit_moves_back_and_one_below_its_limit_leaves() {
        let mut webhooks = DueWebhooks::default();
        webhooks.receive(due(&[ONE, TWO, THREE]));
        let limit = |webhook_id, places| ClaimLimit { webhook_id, limit: places };
        webhooks.record_claim(&[limit(ONE, 0), limit(TWO, 1)], &[]);
        assert_eq!(queue(&webhooks), [THREE, ONE], "the second of them had no due delivery");
        webhooks.receive(due(&[TWO]));
        assert_eq!(queue(&webhooks), [THREE, ONE, TWO], "and can be queued again");
    }
}
