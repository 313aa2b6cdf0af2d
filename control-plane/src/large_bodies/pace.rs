//! The pace at which a large body must arrive, so that a client that stops sending does not keep memory from others.

use std::time::Duration;

use tokio::time::Instant;

use super::budget::{LARGE_BYTES, LargeBodies};

/// Requires that a large body grows within each stall timeout by the same part of its size as the stall timeout is of the
/// receive timeout. A body that arrives steadily within the receive timeout always does. The more a body holds, the more
/// must follow, so that one that was sent fast up to its last bytes can't be held.
#[derive(Debug)]
pub(super) struct Pace {
    stall_timeout: Duration,
    receive_timeout: Duration,
    /// When the body last had grown enough, and its bytes then.
    since: Instant,
    from: usize,
}

impl Pace {
    pub(super) fn new(config: &LargeBodies, now: Instant) -> Self {
        let LargeBodies { stall_timeout, receive_timeout, .. } = *config;
        Self { stall_timeout, receive_timeout, since: now, from: 0 }
    }

    /// Returns when the body has stalled unless it grows. Small bodies never stall.
    pub(super) fn deadline(&self) -> Option<Instant> {
        (self.from > LARGE_BYTES).then(|| self.since + self.stall_timeout)
    }

    /// Notes how many bytes have arrived by now.
    pub(super) fn arrived(&mut self, bytes: usize, now: Instant) {
        let grown =
            (bytes.saturating_sub(self.from) as u128).saturating_mul(self.receive_timeout.as_millis());
        let required = (self.from as u128).saturating_mul(self.stall_timeout.as_millis());
        if self.from <= LARGE_BYTES || grown >= required {
            (self.since, self.from) = (now, bytes);
        }
    }

    /// Notes that the client had to wait for us.
    pub(super) fn waited(&mut self, duration: Duration) {
        self.since += duration;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;
    const SECOND: Duration = Duration::from_secs(1);

    /// Returns in which second the body stalls if `bytes_at` have arrived by each second, at most `seconds`.
    fn stalls_at(seconds: u32, bytes_at: impl Fn(usize) -> usize) -> Option<u32> {
        let config = LargeBodies {
            max_in_flight_mib: 320,
            queue_timeout: 10 * SECOND,
            stall_timeout: 10 * SECOND,
            receive_timeout: 120 * SECOND,
        };
        let start = Instant::now();
        let mut pace = Pace::new(&config, start);
        (1..=seconds).find(|second| {
            let now = start + SECOND * *second;
            let has_stalled = pace.deadline().is_some_and(|deadline| deadline < now);
            pace.arrived(bytes_at(*second as usize), now);
            has_stalled
        })
    }

    #[test]
    fn a_body_that_arrives_steadily_within_the_receive_timeout_never_stalls() {
        for bytes_per_second in [10 << 10, 64 << 10, MIB, 160 * MIB / 118] {
            assert_eq!(stalls_at(118, |second| second * bytes_per_second), None, "{bytes_per_second}");
        }
        assert_eq!(stalls_at(118, |second| second / 10 * 10 * MIB), None, "with pauses");
    }

    #[test]
    fn a_small_body_may_take_long() {
        assert_eq!(stalls_at(118, |_| MIB), None);
    }

    #[test]
    fn a_large_body_that_stops_or_trickles_after_a_fast_start_stalls() {
        assert_eq!(stalls_at(118, |_| 2 * MIB), Some(12), "it stops");
        assert_eq!(stalls_at(118, |second| 150 * MIB + second), Some(12), "a byte a second");
        assert_eq!(
            stalls_at(118, |second| 100 * MIB + second * (128 << 10)),
            Some(12),
            "too little for its size"
        );
    }

    #[test]
    fn time_that_the_client_had_to_wait_does_not_count() {
        let config = LargeBodies {
            max_in_flight_mib: 320,
            queue_timeout: SECOND,
            stall_timeout: SECOND,
            receive_timeout: 10 * SECOND,
        };
        let start = Instant::now();
        let mut pace = Pace::new(&config, start);
        pace.arrived(2 * MIB, start);
        pace.waited(3 * SECOND);
        assert_eq!(pace.deadline(), Some(start + 4 * SECOND));
    }
}
