//! The client's IP address: the connection's peer, or the address that a trusted proxy forwards.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::ConnectInfo;
use http::{Extensions, HeaderMap};
use ipnet::IpNet;

/// Interval between two warnings of a proxy that is not trusted.
const WARNING_INTERVAL: Duration = Duration::from_secs(60 * 60);

/// Networks of proxies that are trusted to set `X-Forwarded-For`.
pub(crate) struct TrustedProxies {
    trusted: Vec<IpNet>,
    ignored: Mutex<IgnoredHeaders>,
}

/// Headers of peers that look like proxies but are not trusted.
#[derive(Default)]
struct IgnoredHeaders {
    /// Since the last warning.
    count: u64,
    warned_at: Option<Instant>,
}

impl TrustedProxies {
    pub(crate) fn new(trusted: Vec<IpNet>) -> Self {
        Self { trusted, ignored: Mutex::default() }
    }

    /// Returns the client's address. In the chain of `X-Forwarded-For`, each proxy vouches only for the entry before its own.
    /// So the chain is followed from its end, up to the first address that no trusted proxy has added.
    pub(crate) fn client_ip(&self, headers: &HeaderMap, extensions: &Extensions) -> Option<IpAddr> {
        let peer = extensions.get::<ConnectInfo<SocketAddr>>()?.0.ip().to_canonical();
        let values = headers.get_all("x-forwarded-for").iter().filter_map(|value| value.to_str().ok());
        let chain: Vec<&str> = values.flat_map(|value| value.split(',')).map(str::trim).collect();
        if !chain.is_empty()
            && let Some(count) = self.ignored_count(peer, Instant::now())
        {
            tracing::warn!(
                %peer,
                count,
                "ignored X-Forwarded-For of a proxy that is not in http.trusted_proxies: all its visitors share the limits \
                 of one address"
            );
        }
        let mut client = peer;
        for entry in chain.into_iter().rev() {
            let (true, Some(before)) = (self.trusts(client), parse_entry(entry)) else { break };
            client = before.to_canonical();
        }
        Some(client)
    }

    /// Returns the network of which all connections are limited together: the address of a peer, or the /64 of an IPv6 address.
    /// `None` for a trusted proxy, which connects for many clients.
    pub(crate) fn limited_network(&self, peer: SocketAddr) -> Option<IpAddr> {
        let ip = peer.ip().to_canonical();
        let network = match ip {
            IpAddr::V4(_) => ip,
            IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() & (u128::MAX << 64)).into(),
        };
        (!self.trusts(ip)).then_some(network)
    }

    /// Counts a header from an untrusted peer in a network of the operator, where only a proxy sends one. Returns the
    /// number since the last warning if another one is due.
    fn ignored_count(&self, peer: IpAddr, now: Instant) -> Option<u64> {
        if !is_internal(peer) || self.trusts(peer) {
            return None;
        }
        let mut ignored = self.ignored.lock().unwrap_or_else(PoisonError::into_inner);
        ignored.count += 1;
        let is_recent = |at| now.saturating_duration_since(at) < WARNING_INTERVAL;
        if ignored.warned_at.is_some_and(is_recent) {
            return None;
        }
        ignored.warned_at = Some(now);
        Some(std::mem::take(&mut ignored.count))
    }

    /// Returns whether an address is that of a trusted proxy.
    pub(crate) fn trusts(&self, ip: IpAddr) -> bool {
        self.trusted.iter().any(|net| net.contains(&ip))
    }
}

/// Returns whether an address is loopback, private or link-local.
fn is_internal(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(v4) => v4.is_loopback() || v4.is_private() || v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_loopback() || v6.is_unique_local() || v6.is_unicast_link_local(),
    }
}

/// Parses an entry of the chain; some proxies append the port.
fn parse_entry(entry: &str) -> Option<IpAddr> {
    entry.parse().ok().or_else(|| entry.parse::<SocketAddr>().ok().map(|address| address.ip()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client_ip(peer: &str, forwarded: &str) -> String {
        let proxies = TrustedProxies::new(vec!["10.0.0.0/8".parse().unwrap()]);
        let mut headers = HeaderMap::new();
        headers.insert("x-forwarded-for", forwarded.parse().unwrap());
        let mut extensions = Extensions::new();
        extensions.insert(ConnectInfo(SocketAddr::new(peer.parse().unwrap(), 1)));
        proxies.client_ip(&headers, &extensions).unwrap().to_string()
    }

    #[test]
    fn ignores_the_header_of_an_untrusted_peer() {
        assert_eq!(client_ip("203.0.113.7", "198.51.100.1"), "203.0.113.7");
    }

    #[test]
    fn follows_a_trusted_chain_to_its_first_untrusted_address() {
        assert_eq!(client_ip("10.0.0.1", "198.51.100.1"), "198.51.100.1");
        assert_eq!(client_ip("10.0.0.1", "1.1.1.1, 198.51.100.1, 10.2.2.2"), "198.51.100.1");
        assert_eq!(client_ip("10.0.0.1", "198.51.100.1:4711"), "198.51.100.1");
        assert_eq!(client_ip("10.0.0.1", "[2001:db8::1]:4711, 10.2.2.2"), "2001:db8::1");
        assert_eq!(client_ip("10.0.0.1", "nonsense"), "10.0.0.1");
        assert_eq!(client_ip("::ffff:10.0.0.1", "198.51.100.1"), "198.51.100.1");
    }

    #[test]
    fn a_proxy_missing_from_the_settings_is_warned_of_once_an_hour() {
        let proxies = TrustedProxies::new(vec!["10.0.0.0/8".parse().unwrap()]);
        let start = Instant::now();
        let count = |peer: &str, minutes: u64| {
            proxies.ignored_count(peer.parse().unwrap(), start + Duration::from_secs(60 * minutes))
        };
        for peer in ["10.0.0.1", "203.0.113.7", "2001:db8::1"] {
            assert_eq!(count(peer, 0), None, "{peer} is trusted, or a visitor");
        }
        assert_eq!(count("127.0.0.1", 0), Some(1));
        assert_eq!([count("172.17.0.1", 1), count("fd00::1", 59)], [None; 2]);
        assert_eq!(count("::1", 60), Some(3), "with those that were not logged");
        assert_eq!((count("::1", 119), count("::1", 120)), (None, Some(2)));
    }

    #[test]
    fn connections_count_for_their_address_or_64_network_unless_from_a_trusted_proxy() {
        let proxies = TrustedProxies::new(vec!["10.0.0.0/8".parse().unwrap()]);
        let network = |peer: &str| {
            proxies
                .limited_network(SocketAddr::new(peer.parse().unwrap(), 1))
                .map(|network| network.to_string())
        };
        assert_eq!(network("203.0.113.7").as_deref(), Some("203.0.113.7"));
        assert_eq!(network("::ffff:203.0.113.7").as_deref(), Some("203.0.113.7"));
        assert_eq!(network("127.0.0.1").as_deref(), Some("127.0.0.1"), "loopback is limited too");
        assert_eq!(network("2001:db8:1:2:3:4:5:6").as_deref(), Some("2001:db8:1:2::"));
        assert_eq!(network("2001:db8:1:2:ffff::1"), network("2001:db8:1:2::"));
        assert_ne!(network("2001:db8:1:3::"), network("2001:db8:1:2::"));
        assert_eq!((network("10.1.2.3"), network("::ffff:10.1.2.3")), (None, None));
    }
}
