//! The only source of the current time. Tests of time-dependent rules (claim windows, retries, retention) move this clock
//! instead of waiting.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;

use chrono::{DateTime, SubsecRound, TimeDelta, Utc};

use crate::metrics::Gauge;

/// The four services follow one clock, so each measures its machine.
static OFFSET: Gauge = Gauge::new(
    "webruntime_clock_offset_seconds",
    "How far this machine's clock was ahead of Postgres', which all services follow, when it was last compared.",
);

/// Wall-clock time: the machine's, another machine's, or a manual clock that stands still until it is moved. Clones share
/// the time.
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    System,
    /// Microseconds since the epoch.
    Manual(Arc<AtomicI64>),
    Remote(Arc<RemoteTime>),
}

/// The time by another machine's clock. It is read for each request, so it takes no lock.
#[derive(Debug)]
struct RemoteTime {
    began: Instant,
    /// What the clock showed at `began`, in microseconds since the epoch; [`NOT_REPORTED`] before the first report.
    at_begin: AtomicI64,
}

const NOT_REPORTED: i64 = i64::MIN;

impl RemoteTime {
    fn elapsed_micros(&self) -> i64 {
        i64::try_from(self.began.elapsed().as_micros()).unwrap_or(i64::MAX)
    }
}

impl Clock {
    /// The machine's clock.
    #[must_use]
    pub fn system() -> Self {
        Self(Source::System)
    }

    /// A clock that shows `start` until `advance` or `set` is called.
    #[must_use]
    pub fn manual(start: DateTime<Utc>) -> Self {
        Self(Source::Manual(Arc::new(AtomicI64::new(start.timestamp_micros()))))
    }

    /// A clock that follows another machine's, as reported by [`Self::follow`]. In between it advances with this machine's
    /// monotonic clock, so setting the machine's time has no effect. Until the first report it shows the machine's time.
    #[must_use]
    pub fn remote() -> Self {
        let at_begin = AtomicI64::new(NOT_REPORTED);
        Self(Source::Remote(Arc::new(RemoteTime { began: Instant::now(), at_begin })))
    }

    /// Reports that the remote clock shows `shown` now, and measures how far the machine's clock is from it. Has no effect on
    /// other clocks.
    #[expect(clippy::disallowed_methods, reason = "the machine's clock is compared here")]
    pub fn follow(&self, shown: DateTime<Utc>) {
        if let Source::Remote(remote) = &self.0 {
            let at_begin = shown.timestamp_micros().saturating_sub(remote.elapsed_micros());
            remote.at_begin.store(at_begin, Ordering::SeqCst);
            OFFSET.set((Utc::now() - shown).as_seconds_f64(), &[]);
        }
    }

    /// Returns the current time in whole milliseconds, so that the API shows exactly the stored value. A manual clock
    /// keeps microseconds, as Postgres does.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "the injected clock reads the real one here")]
    pub fn now(&self) -> DateTime<Utc> {
        match &self.0 {
            Source::System => Utc::now().trunc_subsecs(3),
            Source::Remote(remote) => {
                let micros = match remote.at_begin.load(Ordering::Relaxed) {
                    NOT_REPORTED => None,
                    at_begin => {
                        DateTime::from_timestamp_micros(at_begin.saturating_add(remote.elapsed_micros()))
                    }
                };
                micros.unwrap_or_else(Utc::now).trunc_subsecs(3)
            }
            Source::Manual(micros) => {
                DateTime::from_timestamp_micros(micros.load(Ordering::SeqCst)).unwrap_or_default()
            }
        }
    }

    /// Moves a manual clock, also backwards. Has no effect on the system clock.
    pub fn advance(&self, by: TimeDelta) {
        if let Source::Manual(micros) = &self.0 {
            micros.fetch_add(by.num_microseconds().unwrap_or(i64::MAX), Ordering::SeqCst);
        }
    }

    /// Sets a manual clock. Has no effect on the system clock.
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
    fn clones_share_a_manual_clock_that_moves_only_on_demand() {
        let start = DateTime::from_timestamp(1_700_000_000, 0).unwrap();
        let clock = Clock::manual(start);
        let other = clock.clone();
        assert_eq!(clock.now(), start);
        other.advance(TimeDelta::hours(24));
        assert_eq!(clock.now(), start + TimeDelta::hours(24));
        clock.set(start);
        assert_eq!(other.now(), start);
    }

    #[test]
    fn a_remote_clock_follows_the_other_machine_and_not_this_one() {
        let (clock, shown) = (Clock::remote(), DateTime::from_timestamp(1_700_000_000, 0).unwrap());
        assert!(clock.now() > shown, "until the first report it shows this machine's time");
        clock.clone().follow(shown);
        let first = clock.now();
        assert!(first >= shown && first < shown + TimeDelta::minutes(1), "{first}");
        assert!(clock.now() >= first);
    }
}
