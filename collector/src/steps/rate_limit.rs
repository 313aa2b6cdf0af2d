//! One address can't fill a site's figures: its share is counted over all collectors, without waiting for any.

use std::net::IpAddr;
use std::time::Duration;

use cache::{ApproximateLimiter, Rule};
use domain::tracking::Dropped;
use service::{Clock, Shutdown};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::pipeline::IncomingEvent;

/// How often collectors tell one another.
const TELL_EVERY: Duration = Duration::from_millis(50);

/// Lets each address through so many times a minute.
#[derive(Clone)]
pub(crate) struct RateLimit(ApproximateLimiter);

impl RateLimit {
    pub(crate) fn connect(
        redis: &cache::Config,
        pepper: &[u8],
        per_minute: u32,
    ) -> Result<Self, cache::Error> {
        let rule = Rule { limit: per_minute, window: Duration::from_secs(60) };
        Ok(Self(ApproximateLimiter::connect(&redis.url, &redis.prefix, pepper, rule)?))
    }

    /// Whoever may say when something happened sends the events of a week within a minute: that is no flood.
    pub(crate) fn step(&self, arrival: &IncomingEvent) -> Result<(), Dropped> {
        if arrival.at < arrival.taken_at {
            return Ok(());
        }
        let allowed = self.0.hit(household(arrival.ip), arrival.taken_at);
        if allowed { Ok(()) } else { Err(Dropped::RateLimited) }
    }

    /// Keeps the others up to date.
    pub(crate) async fn share_counts(self, clock: Clock, shutdown: Shutdown) -> anyhow::Result<()> {
        let mut ticks = interval_at(Instant::now() + TELL_EVERY, TELL_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while shutdown.unless_requested(ticks.tick()).await.is_some() {
            self.0.share_counts(clock.now()).await;
        }
        Ok(())
    }
}

/// Of IPv6 the first 64 bits: whoever has one such address has them all.
fn household(ip: IpAddr) -> u128 {
    match ip.to_canonical() {
        IpAddr::V6(v6) => v6.to_bits() & (u128::MAX << 64),
        IpAddr::V4(v4) => v4.to_ipv6_mapped().to_bits(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_address_sends_so_much_a_minute_but_of_the_past_whatever_it_holds() {
        let redis = cache::Config { url: "redis://127.0.0.1:1".to_owned(), prefix: "test".to_owned() };
        let limit = RateLimit::connect(&redis, b"pepper", 2).unwrap();
        let taken_at = "2026-11-21T23:37:00Z".parse().unwrap();
        let now = IncomingEvent { at: taken_at, taken_at, ..IncomingEvent::default() };
        let past =
            IncomingEvent { at: taken_at - chrono::TimeDelta::days(3), taken_at, ..IncomingEvent::default() };
        for _ in 0..5 {
            assert_eq!(limit.step(&past), Ok(()));
        }
        let took = [(), (), ()].map(|()| limit.step(&now));
        assert_eq!(took, [Ok(()), Ok(()), Err(Dropped::RateLimited)]);
        assert_eq!(limit.step(&past), Ok(()));
    }

    #[test]
    fn an_ipv6_household_is_one_address() {
        let of = |ip: &str| household(ip.parse().unwrap());
        assert_eq!(of("2001:db8:1:2:3:4:5:6"), of("2001:db8:1:2::"));
        assert_ne!(of("2001:db8:1:3::"), of("2001:db8:1:2::"));
        assert_eq!(of("::ffff:203.0.113.9"), of("203.0.113.9"));
        assert_ne!(of("203.0.113.8"), of("203.0.113.9"));
    }
}
