//! What may be called although it isn't public: for local runs, tests, and receivers inside an operator's network.
//! Empty by default.

use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;
use url::{Host, Url};

/// One thing that may be called, also without TLS: `127.0.0.0/8`, `192.168.7.9`, `hooks.internal`,
/// `hooks.internal:8080` or `*.internal`.
///
/// A network counts for addresses, in a URL or from DNS. A name counts as it stands in the URL, whatever it leads
/// to; with a port, for that port alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allow(What);

#[derive(Clone, Debug, PartialEq, Eq)]
enum What {
    Network(IpNet),
    Host { name: String, below: bool, port: Option<u16> },
}

/// An entry that is neither a network nor a host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is neither a network (127.0.0.0/8), an address, nor a host (name, name:port, *.name)")]
pub struct InvalidAllow(String);

impl FromStr for Allow {
    type Err = InvalidAllow;

    fn from_str(entry: &str) -> Result<Self, InvalidAllow> {
        let wrong = || InvalidAllow(entry.to_owned());
        if let Ok(network) = entry.parse::<IpNet>() {
            return Ok(Self(What::Network(network.trunc())));
        }
        if let Ok(address) = entry.parse::<IpAddr>() {
            return Ok(Self(What::Network(address.into())));
        }
        let (pattern, port) = match entry.rsplit_once(':') {
            Some((pattern, port)) => (pattern, Some(port.parse().map_err(|_| wrong())?)),
            None => (entry, None),
        };
        let (name, below) = pattern.strip_prefix("*.").map_or((pattern, false), |name| (name, true));
        match Host::parse(name) {
            Ok(Host::Domain(name)) if !name.contains('*') => Ok(Self(What::Host { name, below, port })),
            Ok(_) | Err(_) => Err(wrong()),
        }
    }
}

impl Allow {
    /// Whether a URL's host is allowed by name, or by its address if that is what stands there.
    pub(crate) fn covers(&self, url: &Url) -> bool {
        match (&self.0, url.host()) {
            (What::Network(network), Some(Host::Ipv4(address))) => network.contains(&IpAddr::V4(address)),
            (What::Network(network), Some(Host::Ipv6(address))) => network.contains(&IpAddr::V6(address)),
            (What::Host { name, below, port }, Some(Host::Domain(host))) => {
                let named = if *below {
                    host.strip_suffix(name.as_str()).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
                } else {
                    host == name
                };
                named && port.is_none_or(|port| url.port_or_known_default() == Some(port))
            }
            _ => false,
        }
    }

    /// Whether an address that DNS answered is allowed.
    pub(crate) fn covers_address(&self, address: IpAddr) -> bool {
        matches!(&self.0, What::Network(network) if network.contains(&address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covers(entry: &str, url: &str) -> bool {
        entry.parse::<Allow>().unwrap().covers(&url.parse().unwrap())
    }

    #[test]
    fn names_count_exactly_below_a_star_and_for_their_port() {
        assert!(covers("hooks.internal", "http://HOOKS.internal:81/x"));
        assert!(!covers("hooks.internal", "http://a.hooks.internal"));
        assert!(covers("hooks.internal:8080", "http://hooks.internal:8080"));
        assert!(!covers("hooks.internal:8080", "http://hooks.internal"));
        assert!(covers("hooks.internal:443", "https://hooks.internal"));
        assert!(covers("*.internal", "http://a.b.internal"));
        assert!(!covers("*.internal", "http://internal"));
        assert!(!covers("*.internal", "http://eviinternal"));
    }

    #[test]
    fn networks_count_for_addresses_in_whatever_form_they_are_written() {
        for url in ["http://127.0.0.1:3000", "http://127.1", "http://0x7f.1", "http://2130706433"] {
            assert!(covers("127.0.0.0/8", url), "{url}");
        }
        assert!(covers("::1", "http://[::1]:80"));
        assert!(!covers("127.0.0.0/8", "http://localhost"));
        assert!("127.0.0.0/8".parse::<Allow>().unwrap().covers_address([127, 9, 9, 9].into()));
    }

    #[test]
    fn what_is_neither_is_refused() {
        for entry in ["", "http://x", "a b", "host:port", "*"] {
            assert!(entry.parse::<Allow>().is_err(), "{entry}");
        }
    }
}
