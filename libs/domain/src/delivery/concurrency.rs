//! The concurrency limit of one webhook: additive increase, multiplicative decrease (AIMD).
//!
//! A webhook starts with a few concurrent attempts and gains one with each fast response. While its receiver doesn't
//! answer, the limit falls to one, so a hundred receivers that hang hold a hundred permits, not all of them. A receiver
//! that answers, but not fast, gets as many attempts as keep its backlog from growing, up to [`MAX_SLOW`].

use std::time::Duration;

/// The limit of a webhook without any response so far.
pub const INITIAL: u32 = 4;

/// The highest limit of a webhook that answers slowly. One that answers a little faster gains no more either, but keeps
/// what it gained with fast responses.
pub const MAX_SLOW: u32 = 8;

/// How much of its timeout an attempt used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseSpeed {
    /// Less than a fifteenth; a connection that was refused at once counts as fast too.
    Fast,
    /// Between a fifteenth and a third.
    Moderate,
    /// A third or more, with an answer.
    Slow,
    /// A third or more, without an answer.
    Hanging,
}

impl ResponseSpeed {
    /// Returns the speed of an attempt that took `elapsed` of its `timeout`.
    pub fn of(elapsed: Duration, timeout: Duration, is_answered: bool) -> Self {
        if elapsed * 3 >= timeout {
            if is_answered { Self::Slow } else { Self::Hanging }
        } else if elapsed * 15 >= timeout {
            Self::Moderate
        } else {
            Self::Fast
        }
    }

    /// Returns whether such attempts share the permits of slow webhooks.
    pub fn is_slow(self) -> bool {
        matches!(self, Self::Slow | Self::Hanging)
    }
}

/// How long deliveries of a webhook are overdue when their attempts begin. Grows exactly as long as its backlog does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Delay {
    /// Of the attempt before.
    pub previous: Duration,
    /// Of this attempt.
    pub current: Duration,
    /// How long this attempt took.
    pub elapsed: Duration,
}

/// Returns the limit after an attempt: one more up to `max` if it was fast, half (at least one) without an answer. After
/// any other answer, one more while the backlog grows; after a slow one, one less once deliveries wait for less than half
/// an attempt.
pub fn next_limit(limit: u32, speed: ResponseSpeed, delay: Delay, max: u32) -> u32 {
    let max = max.max(1);
    let grows = delay.current > delay.previous && delay.current > delay.elapsed;
    match speed {
        ResponseSpeed::Fast => limit.saturating_add(1).min(max),
        ResponseSpeed::Moderate if grows && limit < MAX_SLOW.min(max) => limit + 1,
        ResponseSpeed::Moderate => limit,
        ResponseSpeed::Slow => {
            let is_short = delay.current < delay.elapsed / 2;
            let next = if grows { limit + 1 } else { limit - u32::from(is_short && limit > 1) };
            next.min(MAX_SLOW).min(max)
        }
        ResponseSpeed::Hanging => (limit / 2).max(1),
    }
}

#[cfg(test)]
mod tests {
    use super::ResponseSpeed::{Fast, Hanging, Moderate, Slow};
    use super::*;

    #[test]
    fn of_fifteen_seconds_below_one_is_fast_and_from_five_on_slow() {
        let speed = |millis| ResponseSpeed::of(Duration::from_millis(millis), Duration::from_secs(15), true);
        assert_eq!(
            [0, 999, 1_000, 4_999, 5_000, 15_000].map(speed),
            [Fast, Fast, Moderate, Moderate, Slow, Slow]
        );
        let timeout = Duration::from_secs(15);
        assert_eq!(ResponseSpeed::of(timeout, timeout, false), Hanging);
        assert_eq!(ResponseSpeed::of(Duration::ZERO, timeout, false), Fast, "refused at once");
    }

    #[test]
    fn the_limit_rises_to_the_maximum_and_falls_to_one() {
        let (mut limit, delay) = (INITIAL, Delay::default());
        for _ in 0..100 {
            limit = next_limit(limit, Fast, delay, 64);
        }
        assert_eq!(limit, 64);
        assert_eq!(next_limit(limit, Moderate, delay, 64), 64);
        assert_eq!(next_limit(limit, Slow, delay, 64), MAX_SLOW, "at once");
        for _ in 0..7 {
            limit = next_limit(limit, Hanging, delay, 64);
        }
        assert_eq!((limit, next_limit(1, Hanging, delay, 64), next_limit(1, Fast, delay, 0)), (1, 1, 1));
    }

    /// Simulates ten minutes of a receiver that answers after `elapsed`, with one delivery every `interval`, that begin
    /// with this limit. Returns the longest delay of a delivery in the last minute and the highest limit.
    fn simulate(
        (elapsed, speed): (Duration, ResponseSpeed),
        interval: Duration,
        mut limit: u32,
    ) -> (Duration, u32) {
        const STEP: Duration = Duration::from_millis(50);
        let (end, mut now, mut next_due) = (Duration::from_mins(10), Duration::ZERO, Duration::ZERO);
        let (mut highest, mut previous, mut longest) = (0, Duration::ZERO, Duration::ZERO);
        let mut running: std::collections::VecDeque<(Duration, Duration)> = std::collections::VecDeque::new();
        while now < end {
            while running.front().is_some_and(|(ends, _)| *ends <= now) {
                let Some((_, current)) = running.pop_front() else { break };
                limit = next_limit(limit, speed, Delay { previous, current, elapsed }, 64);
                previous = current;
                highest = highest.max(limit);
            }
            while running.len() < limit as usize && next_due <= now {
                let delay = now.checked_sub(next_due).unwrap_or_default();
                running.push_back((now + elapsed, delay));
                next_due += interval;
                if now + Duration::from_mins(1) > end {
                    longest = longest.max(delay);
                }
            }
            now += STEP;
        }
        (longest, highest)
    }

    #[test]
    fn a_slow_receiver_gets_as_many_attempts_as_keep_its_backlog_from_growing() {
        for interval in [1_000, 1_500, 2_000, 5_000, 10_000].map(Duration::from_millis) {
            let (longest, highest) = simulate((Duration::from_secs(6), Slow), interval, INITIAL);
            assert!(longest < Duration::from_secs(60), "{interval:?}: {longest:?} late");
            assert!(highest <= MAX_SLOW, "{highest}");
        }
        let (_, highest) = simulate((Duration::from_secs(6), Slow), Duration::from_millis(100), INITIAL);
        assert_eq!(highest, MAX_SLOW, "more than eight are not enough for sixty");
    }

    #[test]
    fn a_receiver_that_takes_a_second_keeps_up_with_four_events_a_second_also_after_it_hung() {
        let (second, interval) = (Duration::from_secs(1), Duration::from_millis(250));
        for (speed, limit) in [(Moderate, 1), (Moderate, INITIAL), (Slow, 1), (Slow, INITIAL)] {
            let (longest, highest) = simulate((second, speed), interval, limit);
            assert!(longest < Duration::from_secs(5), "{speed:?} from {limit}: {longest:?} late");
            assert!((4..=MAX_SLOW).contains(&highest), "{speed:?} from {limit}: {highest}");
        }
        assert_eq!(next_limit(64, Moderate, Delay::default(), 64), 64, "fast responses gained more");
    }
}
