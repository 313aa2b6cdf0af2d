//! Whose deliveries are due, as far as this process knows: told by the bus, and by a look at all of them now and then.

use std::collections::{HashMap, HashSet, VecDeque};

use cache::BusEvent;
use contract::Signal;
use store::deliveries::{Attempt, Room};
use uuid::Uuid;

/// Webhooks that may have deliveries which are due, in the order in which they are served.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    line: VecDeque<Uuid>,
    known: HashSet<Uuid>,
}

/// Who may be waiting after something was heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Heard {
    /// Nobody more.
    Nothing,
    /// Those that have lined up.
    Some,
    /// Anybody: it must be looked.
    Anybody,
}

impl Waiting {
    /// Lines up whom the bus names.
    pub(super) fn hear(&mut self, event: BusEvent<Signal>) -> Heard {
        match event {
            BusEvent::Message(Signal::DeliveriesDue { webhook_ids }) if !webhook_ids.is_empty() => {
                webhook_ids.into_iter().for_each(|id| self.join(id));
                Heard::Some
            }
            BusEvent::Message(Signal::DeliveriesDue { .. }) | BusEvent::Lagged => Heard::Anybody,
            BusEvent::Message(_) => Heard::Nothing,
        }
    }

    /// These wait, and nobody else; whoever waited before keeps their turn.
    pub(super) fn set(&mut self, due: Vec<Uuid>) {
        self.known = due.iter().copied().collect();
        self.line.retain(|id| self.known.contains(id));
        let lined: HashSet<Uuid> = self.line.iter().copied().collect();
        self.line.extend(due.into_iter().filter(|id| !lined.contains(id)));
    }

    /// Those that were given places step back, and leave if they didn't need them all.
    pub(super) fn served(&mut self, rooms: &[Room], attempts: &[Attempt]) {
        let mut brought: HashMap<Uuid, usize> = HashMap::new();
        for attempt in attempts {
            *brought.entry(attempt.webhook_id).or_default() += 1;
        }
        let given: HashSet<Uuid> = rooms.iter().map(|room| room.webhook_id).collect();
        self.line.retain(|id| !given.contains(id));
        for room in rooms {
            let brought = brought.get(&room.webhook_id).copied().unwrap_or_default();
            if usize::try_from(room.places).is_ok_and(|places| brought < places) {
                self.known.remove(&room.webhook_id);
            } else {
                self.line.push_back(room.webhook_id);
            }
        }
    }

    /// All of them; whoever has waited longest comes first.
    pub(super) fn in_turn(&self) -> impl ExactSizeIterator<Item = Uuid> {
        self.line.iter().copied()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.line.is_empty()
    }

    fn join(&mut self, id: Uuid) {
        if self.known.insert(id) {
            self.line.push_back(id);
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

    fn line(waiting: &Waiting) -> Vec<Uuid> {
        waiting.in_turn().collect()
    }

    #[test]
    fn whoever_is_named_lines_up_once() {
        let mut waiting = Waiting::default();
        assert_eq!(waiting.hear(due(&[TWO, ONE])), Heard::Some);
        assert_eq!(waiting.hear(due(&[ONE])), Heard::Some);
        assert_eq!(line(&waiting), [TWO, ONE]);
        assert_eq!(waiting.hear(BusEvent::Message(Signal::OutboxFilled)), Heard::Nothing);
        assert_eq!(waiting.hear(due(&[])), Heard::Anybody);
        assert_eq!(waiting.hear(BusEvent::Lagged), Heard::Anybody);
    }

    #[test]
    fn a_look_adds_and_takes_away_and_changes_no_turns() {
        let mut waiting = Waiting::default();
        waiting.hear(due(&[THREE, TWO]));
        waiting.set(vec![ONE, THREE]);
        assert_eq!(line(&waiting), [THREE, ONE]);
        waiting.hear(due(&[TWO, ONE]));
        assert_eq!(line(&waiting), [THREE, ONE, TWO]);
    }

    #[test]
    fn who_had_more_than_places_steps_back_and_who_had_fewer_leaves() {
        let mut waiting = Waiting::default();
        waiting.hear(due(&[ONE, TWO, THREE]));
        let room = |webhook_id, places| Room { webhook_id, places };
        waiting.served(&[room(ONE, 0), room(TWO, 1)], &[]);
        assert_eq!(line(&waiting), [THREE, ONE], "of two, it had none");
        waiting.hear(due(&[TWO]));
        assert_eq!(line(&waiting), [THREE, ONE, TWO], "and may come again");
    }
}
