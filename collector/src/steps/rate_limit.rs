//! One address can't fill a site's figures: its share is counted over all collectors.

use std::net::IpAddr;
use std::time::Duration;

use cache::{Limiter, Rule};
use domain::tracking::Dropped;

use crate::pipeline::Arrival;

/// Lets each address through so many times a minute.
pub(crate) struct RateLimit {
    limiter: Limiter,
    rule: Rule,
}

impl RateLimit {
    pub(crate) fn new(limiter: Limiter, per_minute: u32) -> Self {
        Self { limiter, rule: Rule { limit: per_minute, window: Duration::from_secs(60) } }
    }

    pub(crate) async fn step(&self, arrival: &Arrival) -> Result<(), Dropped> {
        let key = format!("collect:{}", household(arrival.ip));
        let decision = self.limiter.hit(&key, &[self.rule], arrival.taken_at).await;
        if decision.allowed { Ok(()) } else { Err(Dropped::RateLimited) }
    }
}

/// Of IPv6 the first 64 bits: whoever has one such address has them all.
fn household(ip: IpAddr) -> IpAddr {
    match ip.to_canonical() {
        IpAddr::V6(v6) => IpAddr::V6((v6.to_bits() & (u128::MAX << 64)).into()),
        v4 @ IpAddr::V4(_) => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv6_household_is_one_address() {
        let of = |ip: &str| household(ip.parse().unwrap()).to_string();
        assert_eq!(of("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!(of("::ffff:203.0.113.9"), "203.0.113.9");
        assert_eq!(of("203.0.113.9"), "203.0.113.9");
    }
}
