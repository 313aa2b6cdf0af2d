//! The limit of requests to http triggers and resume links per address. Counted in this process and shared in batches: a
//! shared count for each request would cost a round trip to Redis.

use std::time::Duration;

use cache::{ApproximateLimiter, Error, Rule};
use chrono::{DateTime, Utc};
use domain::encryption::MasterKey;
use service::{Clock, Shutdown};
use web::{ClientIp, Code, Problem};

const WINDOW: Duration = Duration::from_secs(60);
/// Interval at which the replicas exchange their counts.
const SHARE_INTERVAL: Duration = Duration::from_secs(1);

/// Counts requests by address. Clones share the counts.
#[derive(Clone)]
pub struct RequestRate {
    limiter: Option<ApproximateLimiter>,
    key: MasterKey,
}

impl RequestRate {
    /// Allows `per_minute` requests per address; 0 for any number. `secret` is the same in all replicas.
    pub fn new(redis: &cache::Config, secret: &[u8], per_minute: u32) -> Result<Self, Error> {
        let rule = Rule { limit: per_minute, window: WINDOW };
        let connect = || ApproximateLimiter::connect(redis, &redis.prefix, secret, rule);
        let limiter = (per_minute > 0).then(connect).transpose()?;
        Ok(Self { limiter, key: MasterKey::of_secret(secret) })
    }

    /// Counts a request.
    ///
    /// # Errors
    /// 429 over the limit.
    pub(crate) fn hit(&self, ip: ClientIp, now: DateTime<Utc>) -> Result<(), Problem> {
        let Some(limiter) = &self.limiter else { return Ok(()) };
        let digest = self.key.digest("automation.requests", &[&ip.network()]);
        if limiter.hit(u128::from_be_bytes(std::array::from_fn(|at| digest[at])), now) {
            return Ok(());
        }
        let passed = u64::try_from(now.timestamp()).unwrap_or_default() % WINDOW.as_secs();
        let detail = "too many requests of this address to automations";
        Err(Problem::new(Code::RateLimited, detail).retry_after(WINDOW.as_secs() - passed))
    }

    /// Exchanges counts with the other replicas until shutdown.
    pub async fn share_counts(self, clock: Clock, shutdown: Shutdown) -> anyhow::Result<()> {
        let mut ticks = service::ticks_after(SHARE_INTERVAL, SHARE_INTERVAL);
        while shutdown.unless_requested(ticks.tick()).await.is_some() {
            if let Some(limiter) = &self.limiter {
                limiter.share_counts(clock.now()).await;
            }
        }
        Ok(())
    }
}
