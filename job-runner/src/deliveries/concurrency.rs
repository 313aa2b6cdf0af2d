//! Who is being called: how many attempts are under way, at which webhook, and how many more may begin. Of this process
//! alone and in memory: nothing depends on it but pace.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::places::{self, Pace};
use store::deliveries::Room;
use tokio::sync::Notify;
use uuid::Uuid;

/// Webhooks that get to be known before those are forgotten at which nothing is under way and that don't hang.
const KNOWN_MORE: usize = 1_000;
/// Webhooks that hang and are remembered all the same.
const SLOW_MAX: usize = 2_000;

/// All places. Clones share them.
#[derive(Clone)]
pub(crate) struct Seats(Arc<Shared>);

struct Shared {
    /// Attempts under way at once, in all.
    most: u32,
    /// And at one webhook.
    most_of_one: u32,
    known: Mutex<Known>,
    freed: Notify,
}

#[derive(Default)]
struct Known {
    taken: u32,
    /// Of those, at webhooks that hang.
    taken_by_slow: u32,
    webhooks: HashMap<Uuid, Webhook>,
    /// So many may be known before some are forgotten.
    most: usize,
    /// Attempts begun so far.
    begun: u64,
}

struct Webhook {
    taken: u32,
    places: u32,
    /// Its last attempt was slow.
    is_slow: bool,
    /// The number of its last attempt among all.
    last: u64,
}

impl Webhook {
    const NEW: Self = Self { taken: 0, places: places::FIRST, is_slow: false, last: 0 };
}

impl Known {
    /// Forgets webhooks at which nothing is under way. Those that hang are kept, as each would be given several places
    /// anew; of too many of them, the half that was called longest ago goes.
    fn forget_some(&mut self) {
        self.webhooks.retain(|_, webhook| webhook.taken > 0 || webhook.is_slow);
        if self.webhooks.len() > SLOW_MAX {
            let mut lasts: Vec<_> = self.webhooks.values().map(|webhook| webhook.last).collect();
            let half = lasts.len() / 2;
            let (_, median, _) = lasts.select_nth_unstable(half);
            let median = *median;
            self.webhooks.retain(|_, webhook| webhook.taken > 0 || webhook.last >= median);
        }
        self.most = self.webhooks.len() + KNOWN_MORE;
    }
}

/// A place at a webhook until it has answered, and one of all until it is dropped.
pub(crate) struct Seat {
    seats: Seats,
    webhook_id: Uuid,
    /// It was slow when this began.
    is_slow: bool,
    has_answered: bool,
}

impl Seats {
    pub(crate) fn new(most: u32, most_of_one: u32) -> Self {
        Self(Arc::new(Shared {
            most,
            most_of_one,
            known: Mutex::new(Known { most: KNOWN_MORE, ..Known::default() }),
            freed: Notify::new(),
        }))
    }

    /// How many more attempts may begin.
    pub(crate) fn free(&self) -> u32 {
        self.0.most.saturating_sub(self.known().taken)
    }

    /// Up to `most` places at these webhooks, shared out between those that have any, in their order.
    pub(crate) fn rooms_of(&self, webhooks: impl Iterator<Item = Uuid>, most: u32) -> Vec<Room> {
        let known = self.known();
        let mut left_of_slow = self.0.left_of_slow(&known);
        let with_places = webhooks.filter_map(|id| {
            let webhook = known.webhooks.get(&id).unwrap_or(&Webhook::NEW);
            let mut places = self.0.left(webhook);
            if webhook.is_slow {
                places = places.min(left_of_slow);
                left_of_slow -= places;
            }
            (places > 0).then_some((id, places))
        });
        let with_places: Vec<_> = with_places.collect();
        let (mut left, mut others) = (most, u32::try_from(with_places.len()).unwrap_or(u32::MAX));
        let shared = with_places.into_iter().map(|(webhook_id, places)| {
            let places = places.min(left.div_ceil(others));
            (left, others) = (left - places, others - 1);
            Room { webhook_id, places: i32::try_from(places).unwrap_or(i32::MAX) }
        });
        shared.filter(|room| room.places > 0).collect()
    }

    /// Takes a place; whoever asked for room counts on getting it.
    pub(crate) fn take(&self, webhook_id: Uuid) -> Seat {
        let mut known = self.known();
        if known.webhooks.len() >= known.most {
            known.forget_some();
        }
        known.begun += 1;
        let last = known.begun;
        let webhook = known.webhooks.entry(webhook_id).or_insert(Webhook::NEW);
        (webhook.taken, webhook.last) = (webhook.taken + 1, last);
        let is_slow = webhook.is_slow;
        known.taken += 1;
        known.taken_by_slow += u32::from(is_slow);
        Seat { seats: self.clone(), webhook_id, is_slow, has_answered: false }
    }

    /// Returns when half of a webhook's places, or a quarter of all, have come free since it was last waited for.
    pub(crate) async fn freed(&self) {
        self.0.freed.notified().await;
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    fn left(&self, webhook: &Webhook) -> u32 {
        webhook.places.min(self.most_of_one).saturating_sub(webhook.taken)
    }

    fn left_of_slow(&self, known: &Known) -> u32 {
        (self.most / 2).max(1).saturating_sub(known.taken_by_slow)
    }
}

impl Seat {
    /// Learns from how the attempt went, and gives the webhook's place up.
    pub(crate) fn answered(&mut self, pace: Pace) {
        let mut known = self.seats.known();
        if let Some(webhook) = known.webhooks.get_mut(&self.webhook_id) {
            webhook.places = places::after(webhook.places, pace, self.seats.0.most_of_one);
            webhook.is_slow = pace == Pace::Slow;
        }
        drop(known);
        self.leave_webhook();
    }

    fn leave_webhook(&mut self) {
        if std::mem::replace(&mut self.has_answered, true) {
            return;
        }
        let mut known = self.seats.known();
        known.taken_by_slow = known.taken_by_slow.saturating_sub(u32::from(self.is_slow));
        let Some(webhook) = known.webhooks.get_mut(&self.webhook_id) else { return };
        webhook.taken = webhook.taken.saturating_sub(1);
        let is_half_free = webhook.taken * 2 <= webhook.places;
        drop(known);
        // Not at each single one: what waits is claimed many at a time.
        if is_half_free {
            self.seats.0.freed.notify_one();
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.leave_webhook();
        let mut known = self.seats.known();
        known.taken = known.taken.saturating_sub(1);
        let is_quarter_free = known.taken <= self.seats.0.most / 4 * 3;
        drop(known);
        if is_quarter_free {
            self.seats.0.freed.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Uuid = Uuid::from_u128(1);
    const OTHER: Uuid = Uuid::from_u128(2);

    fn places(seats: &Seats, webhook: Uuid) -> i32 {
        seats.rooms_of([webhook].into_iter(), u32::MAX).first().map_or(0, |room| room.places)
    }

    #[test]
    fn a_webhook_starts_with_a_few_places_and_each_quick_attempt_brings_one_more() {
        let seats = Seats::new(100, 6);
        let taken: Vec<_> = (0..4).map(|_| seats.take(ONE)).collect();
        assert_eq!((places(&seats, ONE), places(&seats, OTHER), seats.free()), (0, 4, 96));
        taken.into_iter().for_each(|mut seat| seat.answered(Pace::Quick));
        assert_eq!((places(&seats, ONE), seats.free()), (6, 100), "and no more than one may have");
    }

    #[test]
    fn webhooks_that_hang_have_one_place_each_and_half_of_all_together() {
        let seats = Seats::new(8, 64);
        let hanging: Vec<Uuid> = (10..20).map(Uuid::from_u128).collect();
        for id in &hanging {
            for _ in 0..2 {
                seats.take(*id).answered(Pace::Slow);
            }
        }
        let rooms = seats.rooms_of(hanging.iter().copied(), 64);
        assert!(rooms.iter().all(|room| room.places == 1), "{rooms:?}");
        assert_eq!(rooms.len(), 4, "within one claim as well");
        let _under_way: Vec<_> = hanging[..4].iter().map(|id| seats.take(*id)).collect();
        assert_eq!((places(&seats, hanging[4]), places(&seats, ONE), seats.free()), (0, 4, 4));
    }

    #[test]
    fn places_are_shared_out_between_those_that_wait() {
        let seats = Seats::new(100, 64);
        let rooms = seats.rooms_of([ONE, OTHER].into_iter(), 4);
        assert_eq!(rooms.iter().map(|room| room.places).collect::<Vec<_>>(), [2, 2]);
        assert_eq!(seats.rooms_of([ONE, OTHER].into_iter(), 1).len(), 1);
        let _taken: Vec<_> = (0..4).map(|_| seats.take(ONE)).collect();
        assert_eq!(seats.rooms_of([ONE, OTHER].into_iter(), 4)[0].places, 4, "but not with whoever has none");
    }

    #[test]
    fn a_webhook_that_has_answered_has_its_place_again_before_that_is_written_down() {
        let seats = Seats::new(8, 1);
        let mut seat = seats.take(ONE);
        assert_eq!(places(&seats, ONE), 0);
        seat.answered(Pace::Quick);
        assert_eq!((places(&seats, ONE), seats.free()), (1, 7));
    }

    #[test]
    fn one_place_in_all_is_taken_in_turn_by_those_that_hang_and_others() {
        let seats = Seats::new(1, 1);
        seats.take(ONE).answered(Pace::Slow);
        assert_eq!((places(&seats, ONE), places(&seats, OTHER)), (1, 1));
    }

    #[test]
    fn webhooks_that_hang_are_not_forgotten_when_many_others_get_to_be_known() {
        let seats = Seats::new(100, 64);
        let hanging: Vec<Uuid> = (0..1_500).map(|number| Uuid::from_u128(1 << 64 | number)).collect();
        for id in &hanging {
            seats.take(*id).answered(Pace::Slow);
        }
        (0..10_000).for_each(|number| seats.take(Uuid::from_u128(number)).answered(Pace::Quick));
        let known = &seats.known().webhooks;
        let slow = known.values().filter(|webhook| webhook.is_slow).count();
        assert_eq!((slow, known.len() <= hanging.len() + KNOWN_MORE), (hanging.len(), true));
    }

    #[test]
    fn of_too_many_that_hang_those_are_remembered_that_were_called_last() {
        let seats = Seats::new(100, 64);
        let _under_way = seats.take(ONE);
        let hanging = (2..100_000).map(Uuid::from_u128);
        hanging.for_each(|id| seats.take(id).answered(Pace::Slow));
        let known = &seats.known().webhooks;
        assert!((SLOW_MAX / 2..=SLOW_MAX + KNOWN_MORE).contains(&known.len()), "{}", known.len());
        let is_known = |id| known.contains_key(&Uuid::from_u128(id));
        assert!(is_known(99_999) && is_known(99_000) && is_known(1) && !is_known(2));
    }

    #[test]
    fn a_place_that_is_dropped_without_a_word_comes_free() {
        let seats = Seats::new(1, 1);
        drop(seats.take(ONE));
        assert_eq!((seats.free(), places(&seats, ONE)), (1, 1));
    }
}
