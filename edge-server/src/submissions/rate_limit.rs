//! Limits the submissions that one network address sends to a form per minute and per day.
//!
//! Hits are counted in memory and exchanged with the other edges in the background, so no submission waits for a count.
//! Addresses are counted under a keyed digest.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cache::{ApproximateLimiter, Rule};
use chrono::{DateTime, TimeDelta, Utc};
use domain::encryption::MasterKey;
use service::{Clock, Shutdown};
use store::forms::Form;
use uuid::Uuid;
use web::{ClientIp, Code, Problem};

const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Interval at which edges exchange their counts.
const SHARE_INTERVAL: Duration = Duration::from_millis(50);
/// Time for which a form that stores no more submissions over the limit is not asked again.
const FULL_FOR: TimeDelta = TimeDelta::seconds(60);
/// Most forms that are remembered as full. Beyond it, Postgres is asked more often.
const MAX_FULL_FORMS: usize = 10_000;

/// The limits of submissions from one address. Clones share their counts.
#[derive(Clone)]
pub(crate) struct SubmissionRate {
    windows: [Window; 2],
    full_until: Arc<Mutex<HashMap<Uuid, DateTime<Utc>>>>,
}

#[derive(Clone)]
struct Window {
    name: &'static str,
    length: Duration,
    /// Limit of forms without their own; 0 for none.
    default_limit: u32,
    limiter: ApproximateLimiter,
}

/// A submission over a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exceeded {
    /// When the limit's window ends.
    retry_after: Duration,
}

impl SubmissionRate {
    /// Limits per minute and per day of forms without their own; 0 for none.
    ///
    /// # Errors
    /// The URL of Redis is invalid.
    pub(crate) fn new(
        [per_minute, per_day]: [u32; 2],
        redis: &cache::Config,
        pepper: &[u8],
    ) -> Result<Self, cache::Error> {
        let window = |name, length, default_limit| {
            let rule = Rule { limit: default_limit, window: length };
            let limiter = ApproximateLimiter::connect(redis, &redis.prefix, pepper, rule)?;
            Ok::<_, cache::Error>(Window { name, length, default_limit, limiter })
        };
        let windows = [window("forms.minute", MINUTE, per_minute)?, window("forms.day", DAY, per_day)?];
        Ok(Self { windows, full_until: Arc::default() })
    }

    /// Counts a submission. Returns the limit that it exceeds; then it is not counted in that limit's window.
    pub(super) fn hit(
        &self,
        key: &MasterKey,
        form: &Form,
        ip: IpAddr,
        now: DateTime<Utc>,
    ) -> Option<Exceeded> {
        let limits = [form.spam.per_minute, form.spam.per_day];
        self.windows.iter().zip(limits).find_map(|(window, own)| {
            let limit = own.map_or(window.default_limit, |own| u32::try_from(own).unwrap_or_default());
            let is_within = limit == 0 || window.limiter.hit_within(window.key(key, form.id, ip), limit, now);
            (!is_within).then(|| Exceeded { retry_after: window.ends_after(now) })
        })
    }

    /// Remembers that the form stores no more submissions over the limit.
    pub(super) fn mark_full(&self, form_id: Uuid, now: DateTime<Utc>) {
        let mut full_until = self.full_until();
        if full_until.len() >= MAX_FULL_FORMS {
            full_until.retain(|_, until| *until > now);
        }
        if full_until.len() < MAX_FULL_FORMS {
            full_until.insert(form_id, now + FULL_FOR);
        }
    }

    /// Returns whether the form stores no more submissions over the limit.
    pub(super) fn is_full(&self, form_id: Uuid, now: DateTime<Utc>) -> bool {
        self.full_until().get(&form_id).is_some_and(|until| *until > now)
    }

    /// Exchanges counts with the other edges until shutdown.
    pub(crate) async fn share_counts(self, clock: Clock, shutdown: Shutdown) -> anyhow::Result<()> {
        let mut ticks = service::ticks_after(SHARE_INTERVAL, SHARE_INTERVAL);
        while shutdown.unless_requested(ticks.tick()).await.is_some() {
            for window in &self.windows {
                window.limiter.share_counts(clock.now()).await;
            }
        }
        Ok(())
    }

    fn full_until(&self) -> MutexGuard<'_, HashMap<Uuid, DateTime<Utc>>> {
        self.full_until.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Window {
    fn key(&self, key: &MasterKey, form_id: Uuid, ip: IpAddr) -> u128 {
        let digest = key.digest(self.name, &[&form_id.to_string(), &ClientIp(ip).network()]);
        u128::from_be_bytes(std::array::from_fn(|at| digest[at]))
    }

    /// Returns the time until the current window ends, at least a second.
    fn ends_after(&self, now: DateTime<Utc>) -> Duration {
        let length = self.length.as_secs();
        let passed = u64::try_from(now.timestamp()).unwrap_or_default() % length;
        Duration::from_secs(length - passed)
    }
}

impl Exceeded {
    /// The problem if the form stores no more submissions over the limit.
    pub(super) fn problem(self) -> Problem {
        let detail = "too many submissions of this form came from your network; this one was not stored";
        Problem::new(Code::RateLimited, detail).retry_after(self.retry_after.as_secs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(limits: [u32; 2]) -> SubmissionRate {
        let redis = cache::Config::new("redis://127.0.0.1:1", "test");
        SubmissionRate::new(limits, &redis, b"pepper").unwrap()
    }

    fn form(id: u128) -> Form {
        Form::new(Uuid::from_u128(id), "F".to_owned(), Vec::new(), DateTime::UNIX_EPOCH)
    }

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(86_400 * 20_000 + seconds, 0).unwrap()
    }

    #[tokio::test]
    async fn counts_by_form_and_network_and_window() {
        let (rate, key) = (rate([2, 3]), MasterKey::of_secret(b"secret"));
        let hit = |id: u128, ip: &str, seconds| {
            rate.hit(&key, &form(id), ip.parse().unwrap(), at(seconds)).map(|over| over.retry_after.as_secs())
        };
        assert_eq!([hit(1, "192.0.2.1", 0), hit(1, "192.0.2.1", 20)], [None; 2]);
        assert_eq!(hit(1, "192.0.2.1", 45), Some(15), "until the minute ends");
        assert_eq!([hit(1, "192.0.2.2", 46), hit(2, "192.0.2.1", 46)], [None; 2]);
        assert_eq!(hit(1, "192.0.2.1", 60), None);
        assert_eq!(hit(1, "192.0.2.1", 61), Some(86_400 - 61), "until the day ends");
        let of_network = [hit(1, "2001:db8::1", 0), hit(1, "2001:db8::2", 0), hit(1, "2001:db8:0:0:9::", 0)];
        assert_eq!(of_network, [None, None, Some(60)], "one /64 counts as one address");
        assert_eq!(hit(1, "2001:db8:0:1::1", 0), None);
    }

    #[tokio::test]
    async fn a_forms_own_limits_replace_the_defaults_and_zero_disables_them() {
        let (rate, key) = (rate([1, 2]), MasterKey::of_secret(b"secret"));
        let ip: IpAddr = [192, 0, 2, 1].into();
        let mut open = form(1);
        (open.spam.per_minute, open.spam.per_day) = (Some(0), Some(0));
        assert!((0..100).all(|_| rate.hit(&key, &open, ip, at(0)).is_none()));
        let mut strict = form(2);
        (strict.spam.per_minute, strict.spam.per_day) = (Some(3), Some(0));
        let hits = [(); 4].map(|()| rate.hit(&key, &strict, ip, at(0)).is_some());
        assert_eq!(hits, [false, false, false, true]);
    }

    #[tokio::test]
    async fn a_full_form_is_remembered_for_a_minute() {
        let rate = rate([1, 1]);
        let id = Uuid::from_u128(1);
        assert!(!rate.is_full(id, at(0)));
        rate.mark_full(id, at(0));
        assert_eq!([rate.is_full(id, at(59)), rate.is_full(id, at(60))], [true, false]);
        assert!(!rate.is_full(Uuid::from_u128(2), at(1)));
    }
}
