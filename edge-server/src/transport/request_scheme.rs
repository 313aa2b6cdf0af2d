//! The scheme of a request, as its visitor sees it: of the connection, or of the connection to a trusted proxy.

use std::net::SocketAddr;

use crate::client_ip::TrustedProxies;

/// The header in which a proxy that terminates TLS names the visitor's scheme.
pub(crate) const FORWARDED_PROTO: &str = "x-forwarded-proto";

/// Decides for the requests of one connection whether they came over https.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RequestScheme {
    is_tls: bool,
    trusts_header: bool,
}

impl RequestScheme {
    pub(crate) fn new(is_tls: bool, peer: SocketAddr, proxies: &TrustedProxies) -> Self {
        Self { is_tls, trusts_header: proxies.trusts(peer.ip().to_canonical()) }
    }

    /// Returns whether a request came over https. `forwarded` is its `X-Forwarded-Proto`, which counts only from a trusted
    /// proxy. In a chain of proxies the first entry is that of the visitor.
    pub(crate) fn is_https(self, forwarded: Option<&[u8]>) -> bool {
        let is_https = |value: &[u8]| {
            let first = value.split(|byte| *byte == b',').next().unwrap_or_default();
            first.trim_ascii().eq_ignore_ascii_case(b"https")
        };
        self.is_tls || (self.trusts_header && forwarded.is_some_and(is_https))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_trusted_proxy_names_the_scheme() {
        let proxies = TrustedProxies::new(vec!["10.0.0.0/8".parse().unwrap()]);
        let is_https = |is_tls, peer: &str, forwarded: &str| {
            RequestScheme::new(is_tls, SocketAddr::new(peer.parse().unwrap(), 1), &proxies)
                .is_https(Some(forwarded.as_bytes()).filter(|value| !value.is_empty()))
        };
        for forwarded in ["https", "HTTPS", " https , http"] {
            assert!(is_https(false, "10.0.0.1", forwarded) && is_https(false, "::ffff:10.0.0.1", forwarded));
            assert!(!is_https(false, "203.0.113.7", forwarded), "{forwarded}");
        }
        for forwarded in ["", "http", "http, https", "https2", ",https"] {
            assert!(!is_https(false, "10.0.0.1", forwarded), "{forwarded}");
            assert!(is_https(true, "203.0.113.7", forwarded), "the connection itself is one over TLS");
        }
    }
}
