//! How many attempts at one webhook may be under way at once: a few until it is known to be quick, one while it hangs.
//! So a hundred receivers that never answer hold a hundred places, not all of them.

use std::time::Duration;

/// For a webhook of which nothing is known.
pub const FIRST: u32 = 4;

/// How a receiver took an attempt, as far as it says how many more it should get at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// It answered, or broke off, at once.
    Quick,
    /// It took its time.
    Fair,
    /// It took a good part of what it may take, or all of it.
    Slow,
}

/// The pace of an attempt that took so long of the `timeout` it had.
pub fn pace(took: Duration, timeout: Duration) -> Pace {
    if took * 3 >= timeout {
        Pace::Slow
    } else if took * 15 >= timeout {
        Pace::Fair
    } else {
        Pace::Quick
    }
}

/// The places of a webhook that had `places`, after an attempt of this pace: one more up to `most`, or half as many.
pub fn after(places: u32, pace: Pace, most: u32) -> u32 {
    match pace {
        Pace::Quick => places.saturating_add(1).min(most.max(1)),
        Pace::Fair => places,
        Pace::Slow => (places / 2).max(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_answers_within_a_second_of_fifteen_is_quick_and_from_five_on_slow() {
        let pace = |millis| pace(Duration::from_millis(millis), Duration::from_secs(15));
        assert_eq!(
            [0, 999, 1_000, 4_999, 5_000, 15_000].map(pace),
            [Pace::Quick, Pace::Quick, Pace::Fair, Pace::Fair, Pace::Slow, Pace::Slow]
        );
    }

    #[test]
    fn a_quick_receiver_gains_places_up_to_the_most_and_a_hanging_one_ends_with_one() {
        let mut places = FIRST;
        for _ in 0..100 {
            places = after(places, Pace::Quick, 64);
        }
        assert_eq!(places, 64);
        assert_eq!(after(places, Pace::Fair, 64), 64);
        for _ in 0..7 {
            places = after(places, Pace::Slow, 64);
        }
        assert_eq!((places, after(1, Pace::Slow, 64), after(1, Pace::Quick, 0)), (1, 1, 1));
    }
}
