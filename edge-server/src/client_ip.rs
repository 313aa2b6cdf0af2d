//! Who the visitor is: the connection's peer, or whom a trusted proxy says it speaks for.

use std::net::{IpAddr, SocketAddr};

use axum::extract::ConnectInfo;
use http::{Extensions, HeaderMap};
use ipnet::IpNet;

/// The proxies whose `X-Forwarded-For` is believed.
pub(crate) struct TrustedProxies(Vec<IpNet>);

impl TrustedProxies {
    /// Believes these networks and nobody else.
    pub(crate) fn new(trusted: Vec<IpNet>) -> Self {
        Self(trusted)
    }

    /// The visitor's address. Of the chain in `X-Forwarded-For` each proxy vouches only for the entry before
    /// it, so the chain is walked from its end up to the first address nobody trusted has written.
    pub(crate) fn visitor(&self, headers: &HeaderMap, extensions: &Extensions) -> Option<IpAddr> {
        let peer = extensions.get::<ConnectInfo<SocketAddr>>()?.0.ip().to_canonical();
        let values = headers.get_all("x-forwarded-for").iter().filter_map(|value| value.to_str().ok());
        let chain: Vec<&str> = values.flat_map(|value| value.split(',')).map(str::trim).collect();
        let mut visitor = peer;
        for entry in chain.into_iter().rev() {
            let (true, Some(before)) = (self.trusts(visitor), address(entry)) else { break };
            visitor = before.to_canonical();
        }
        Some(visitor)
    }

    fn trusts(&self, ip: IpAddr) -> bool {
        self.0.iter().any(|net| net.contains(&ip))
    }
}

/// An entry of the chain; some proxies write the port behind it.
fn address(entry: &str) -> Option<IpAddr> {
    entry.parse().ok().or_else(|| entry.parse::<SocketAddr>().ok().map(|address| address.ip()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visitor(peer: &str, forwarded: &str) -> String {
        let proxies = TrustedProxies::new(vec!["10.0.0.0/8".parse().unwrap()]);
        let mut headers = HeaderMap::new();
        headers.insert("x-forwarded-for", forwarded.parse().unwrap());
        let mut extensions = Extensions::new();
        extensions.insert(ConnectInfo(SocketAddr::new(peer.parse().unwrap(), 1)));
        proxies.visitor(&headers, &extensions).unwrap().to_string()
    }

    #[test]
    fn a_stranger_can_not_forge_an_address() {
        assert_eq!(visitor("203.0.113.7", "198.51.100.1"), "203.0.113.7");
    }

    #[test]
    fn a_trusted_chain_is_walked_to_its_first_stranger() {
        assert_eq!(visitor("10.0.0.1", "198.51.100.1"), "198.51.100.1");
        assert_eq!(visitor("10.0.0.1", "1.1.1.1, 198.51.100.1, 10.2.2.2"), "198.51.100.1");
        assert_eq!(visitor("10.0.0.1", "198.51.100.1:4711"), "198.51.100.1");
        assert_eq!(visitor("10.0.0.1", "[2001:db8::1]:4711, 10.2.2.2"), "2001:db8::1");
        assert_eq!(visitor("10.0.0.1", "nonsense"), "10.0.0.1");
        assert_eq!(visitor("::ffff:10.0.0.1", "198.51.100.1"), "198.51.100.1");
    }
}
