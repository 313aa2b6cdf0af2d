//! The one place that asks what time it is. Rules that depend on time (claim windows, retries, retention) are
//! tested by moving this clock, never by waiting.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};

/// Wall-clock time, either the machine's or one that stands still until it is moved.
///
/// Clones share the same time.
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    System,
    /// Microseconds since the epoch.
    Manual(Arc<AtomicI64>),
}

impl Clock {
    /// The machine's clock.
    #[must_use]
    pub fn system() -> Self {
        Self(Source::System)
    }

    /// A clock that stands at `start` until `advance` or `set` is called.
    #[must_use]
    pub fn manual(start: DateTime<Utc>) -> Self {
        Self(Source::Manual(Arc::new(AtomicI64::new(start.timestamp_micros()))))
    }

    /// The time now, to the millisecond: what the API shows is then exactly what is stored. A manual clock keeps
    /// microseconds, as Postgres does.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "this is where the handed-in clock reads the real one")]
    pub fn now(&self) -> DateTime<Utc> {
        match &self.0 {
            Source::System => Utc::now().trunc_subsecs(3),
            Source::Manual(micros) => {
                DateTime::from_timestamp_micros(micros.load(Ordering::SeqCst)).unwrap_or_default()
            }
        }
    }

    /// Moves a manual clock (backwards too); the system's clock doesn't listen.
    pub fn advance(&self, by: TimeDelta) {
        if let Source::Manual(micros) = &self.0 {
            micros.fetch_add(by.num_microseconds().unwrap_or(i64::MAX), Ordering::SeqCst);
        }
    }

    /// Puts a manual clock to a certain time; the system's clock doesn't listen.
    pub fn set(&self, to: DateTime<Utc>) {
        if let Source::Manual(micros) = &self.0 {
            micros.store(to.timestamp_micros(), Ordering::SeqCst);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manual_clock_moves_only_when_told_and_is_shared_by_its_clones() {
        let start = DateTime::from_timestamp(1_700_000_000, 0).unwrap();
        let clock = Clock::manual(start);
        let other = clock.clone();
        assert_eq!(clock.now(), start);
        other.advance(TimeDelta::hours(24));
        assert_eq!(clock.now(), start + TimeDelta::hours(24));
        clock.set(start);
        assert_eq!(other.now(), start);
    }
}
