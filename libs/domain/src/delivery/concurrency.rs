//! The concurrency limit of one webhook: additive increase, multiplicative decrease (AIMD).
//!
//! A webhook starts with a few concurrent attempts, gains one with each fast response and falls to one while its
//! receiver hangs. So a hundred receivers that never respond hold a hundred permits, not all of them.

use std::time::Duration;

/// The limit of a webhook without any response so far.
pub const INITIAL: u32 = 4;

/// How much of its timeout an attempt used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseSpeed {
    /// Less than a fifteenth; a connection that was refused at once counts as fast too.
    Fast,
    /// Between a fifteenth and a third.
    Moderate,
    /// A third or more, up to a timeout.
    Slow,
}

impl ResponseSpeed {
    /// Returns the speed of an attempt that took `elapsed` of its `timeout`.
    pub fn of(elapsed: Duration, timeout: Duration) -> Self {
        if elapsed * 3 >= timeout {
            Self::Slow
        } else if elapsed * 15 >= timeout {
            Self::Moderate
        } else {
            Self::Fast
        }
    }
}

/// Returns the limit after an attempt: one more up to `max` if it was fast, half (at least one) if it was slow.
pub fn next_limit(limit: u32, speed: ResponseSpeed, max: u32) -> u32 {
    match speed {
        ResponseSpeed::Fast => limit.saturating_add(1).min(max.max(1)),
        ResponseSpeed::Moderate => limit,
        ResponseSpeed::Slow => (limit / 2).max(1),
    }
}

#[cfg(test)]
mod tests {
    use super::ResponseSpeed::{Fast, Moderate, Slow};
    use super::*;

    #[test]
    fn of_fifteen_seconds_below_one_is_fast_and_from_five_on_slow() {
        let speed = |millis| ResponseSpeed::of(Duration::from_millis(millis), Duration::from_secs(15));
        assert_eq!(
            [0, 999, 1_000, 4_999, 5_000, 15_000].map(speed),
            [Fast, Fast, Moderate, Moderate, Slow, Slow]
        );
    }

    #[test]
    fn the_limit_rises_to_the_maximum_and_falls_to_one() {
        let mut limit = INITIAL;
        for _ in 0..100 {
            limit = next_limit(limit, Fast, 64);
        }
        assert_eq!(limit, 64);
        assert_eq!(next_limit(limit, Moderate, 64), 64);
        for _ in 0..7 {
            limit = next_limit(limit, Slow, 64);
        }
        assert_eq!((limit, next_limit(1, Slow, 64), next_limit(1, Fast, 0)), (1, 1, 1));
    }
}
