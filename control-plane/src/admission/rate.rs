//! The limit of calls per second: a token bucket per account, or per address for calls without an account. Each replica
//! counts for itself, because a shared count would cost every call a request to Redis.

use std::fmt;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use governor::clock::{Clock, DefaultClock};
use governor::middleware::StateInformationMiddleware;
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter};
use http::HeaderMap;
use uuid::Uuid;
use web::{ClientIp, Code, Problem};

use super::rate_limit_headers::{bucket_headers, seconds};

/// Every so many calls the buckets that are full again are removed.
const CLEANUP_PERIOD: u32 = 4_096;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Caller {
    Account(Uuid),
    Address(String),
}

type Buckets = RateLimiter<Caller, HashMapStateStore<Caller>, DefaultClock, StateInformationMiddleware>;

/// The buckets of all callers.
pub(super) struct Rate {
    per_second: NonZeroU32,
    buckets: Buckets,
    clock: DefaultClock,
    calls: AtomicU32,
}

/// The headers of the response, and the problem of a rejected call.
#[derive(Debug, Default)]
pub(crate) struct Hit {
    pub(crate) headers: HeaderMap,
    pub(crate) rejection: Option<Problem>,
}

impl fmt::Debug for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rate").field("per_second", &self.per_second).finish_non_exhaustive()
    }
}

impl Rate {
    /// Returns `None` if `per_second` is 0, which allows any rate.
    pub(super) fn new(per_second: u32) -> Option<Self> {
        let per_second = NonZeroU32::new(per_second)?;
        let buckets = RateLimiter::hashmap(Quota::per_second(per_second)).with_middleware();
        Some(Self { per_second, buckets, clock: DefaultClock::default(), calls: AtomicU32::new(0) })
    }

    /// Takes a token of the caller's bucket.
    pub(super) fn hit(&self, account_id: Option<Uuid>, ip: ClientIp) -> Hit {
        if self.calls.fetch_add(1, Ordering::Relaxed) % CLEANUP_PERIOD == CLEANUP_PERIOD - 1 {
            self.buckets.retain_recent();
        }
        let caller = account_id.map_or_else(|| Caller::Address(ip.network()), Caller::Account);
        let limit = self.per_second.get();
        match self.buckets.check_key(&caller) {
            Ok(state) => Hit {
                headers: bucket_headers(limit, state.remaining_burst_capacity(), Duration::ZERO),
                rejection: None,
            },
            Err(rejected) => {
                let wait = rejected.wait_time_from(self.clock.now());
                let detail = format!("at most {limit} calls per second are allowed");
                let problem = Problem::new(Code::RateLimited, detail).retry_after(seconds(wait).max(1));
                Hit { headers: bucket_headers(limit, 0, wait), rejection: Some(problem) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(last: u8) -> ClientIp {
        ClientIp([192, 0, 2, last].into())
    }

    #[test]
    fn a_flood_of_one_account_empties_only_its_own_bucket() {
        assert!(Rate::new(0).is_none(), "0 allows any rate");
        let rate = Rate::new(3).unwrap();
        let (busy, other) = (Some(Uuid::from_u128(1)), Some(Uuid::from_u128(2)));
        let remaining: Vec<_> = (0..3).map(|_| rate.hit(busy, ip(1)).headers).collect();
        assert_eq!(remaining[0]["ratelimit-policy"], r#""second";q=3;w=1"#);
        assert_eq!(remaining[0]["ratelimit"], r#""second";r=2;t=0"#);
        let rejected = rate.hit(busy, ip(1));
        assert_eq!(rejected.rejection.unwrap().code(), Code::RateLimited);
        assert_eq!(rejected.headers["ratelimit"], r#""second";r=0;t=1"#);
        for caller in [other, None] {
            assert!(rate.hit(caller, ip(1)).rejection.is_none(), "{caller:?}");
        }
    }

    #[test]
    fn calls_without_an_account_count_by_address() {
        let rate = Rate::new(1).unwrap();
        let rejected = [1, 1, 2].map(|last| rate.hit(None, ip(last)).rejection.is_some());
        assert_eq!(rejected, [false, true, false]);
    }
}
