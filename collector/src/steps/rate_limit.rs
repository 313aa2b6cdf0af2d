//! Limits the events of one address per minute, counted over all collectors without waiting for any of them.

use std::net::IpAddr;
use std::time::Duration;

use cache::{ApproximateLimiter, Rule};
use domain::tracking::Dropped;
use service::{Clock, Shutdown};

use crate::incoming_event::IncomingEvent;

/// How often collectors exchange their counts.
const SHARE_INTERVAL: Duration = Duration::from_millis(50);

/// The limiter. Clones share its counters.
#[derive(Clone)]
pub(crate) struct RateLimit(ApproximateLimiter);

impl RateLimit {
    pub(crate) fn connect(
        redis: &cache::Config,
        pepper: &[u8],
        per_minute: u32,
    ) -> Result<Self, cache::Error> {
        let rule = Rule { limit: per_minute, window: Duration::from_secs(60) };
        Ok(Self(ApproximateLimiter::connect(redis, &redis.prefix, pepper, rule)?))
    }

    /// Events of the past are exempt: a sender with the edge token loads a week of them within a minute.
    pub(crate) fn step(&self, event: &IncomingEvent) -> Result<(), Dropped> {
        if event.occurred_at < event.arrived_at {
            return Ok(());
        }
        let allowed = self.0.hit(network_of(event.ip), event.arrived_at);
        if allowed { Ok(()) } else { Err(Dropped::RateLimited) }
    }

    /// Exchanges counts with the other collectors until shutdown.
    pub(crate) async fn share_counts(self, clock: Clock, shutdown: Shutdown) -> anyhow::Result<()> {
        let mut ticks = service::ticks_after(SHARE_INTERVAL, SHARE_INTERVAL);
        while shutdown.unless_requested(ticks.tick()).await.is_some() {
            self.0.share_counts(clock.now()).await;
        }
        Ok(())
    }
}

/// The IPv4 address, or the /64 of an IPv6 address: one subscriber has all addresses of it.
fn network_of(ip: IpAddr) -> u128 {
    match ip.to_canonical() {
        IpAddr::V6(v6) => v6.to_bits() & (u128::MAX << 64),
        IpAddr::V4(v4) => v4.to_ipv6_mapped().to_bits(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn limits_current_events_of_one_address_but_not_past_ones() {
        let redis = cache::Config::new("redis://127.0.0.1:1", "test");
        let limit = RateLimit::connect(&redis, b"pepper", 2).unwrap();
        let arrived_at = "2026-11-21T23:37:00Z".parse().unwrap();
        let current = IncomingEvent { occurred_at: arrived_at, arrived_at, ..IncomingEvent::default() };
        let past = IncomingEvent {
            occurred_at: arrived_at - chrono::TimeDelta::days(3),
            arrived_at,
            ..IncomingEvent::default()
        };
        for _ in 0..5 {
            assert_eq!(limit.step(&past), Ok(()));
        }
        let results = [(), (), ()].map(|()| limit.step(&current));
        assert_eq!(results, [Ok(()), Ok(()), Err(Dropped::RateLimited)]);
        assert_eq!(limit.step(&past), Ok(()));
    }

    #[test]
    fn an_ipv6_network_counts_as_one_address() {
        let of = |ip: &str| network_of(ip.parse().unwrap());
        assert_eq!(of("2001:db8:1:2:3:4:5:6"), of("2001:db8:1:2::"));
        assert_ne!(of("2001:db8:1:3::"), of("2001:db8:1:2::"));
        assert_eq!(of("::ffff:203.0.113.9"), of("203.0.113.9"));
        assert_ne!(of("203.0.113.8"), of("203.0.113.9"));
    }
}
