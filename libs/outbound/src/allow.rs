//! The allow-list of non-public targets, for local runs, tests and receivers inside an operator's network. Empty by
//! default.

use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;
use url::{Host, Origin, Url};

/// One allowed target, which may also be called without TLS: `127.0.0.0/8`, `192.168.7.9`, `hooks.internal`,
/// `hooks.internal:8080` or `*.internal`.
///
/// A network matches addresses, both in a URL and from DNS. A name matches the host in the URL, whatever it resolves to;
/// with a port, only on that port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allow(Pattern);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Pattern {
    Network(IpNet),
    Host { name: String, includes_subdomains: bool, port: Option<u16> },
    Origin(Origin),
}

/// An entry that is neither a network nor a host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is neither a network (127.0.0.0/8), an address, nor a host (name, name:port, *.name)")]
pub struct InvalidAllow(String);

impl FromStr for Allow {
    type Err = InvalidAllow;

    fn from_str(entry: &str) -> Result<Self, InvalidAllow> {
        let invalid = || InvalidAllow(entry.to_owned());
        if let Ok(network) = entry.parse::<IpNet>() {
            return Ok(Self(Pattern::Network(network.trunc())));
        }
        if let Ok(address) = entry.parse::<IpAddr>() {
            return Ok(Self(Pattern::Network(address.into())));
        }
        let (pattern, port) = match entry.rsplit_once(':') {
            Some((pattern, port)) => (pattern, Some(port.parse().map_err(|_| invalid())?)),
            None => (entry, None),
        };
        let (name, includes_subdomains) =
            pattern.strip_prefix("*.").map_or((pattern, false), |name| (name, true));
        match Host::parse(name) {
            Ok(Host::Domain(name)) if !name.contains('*') => {
                Ok(Self(Pattern::Host { name, includes_subdomains, port }))
            }
            Ok(_) | Err(_) => Err(invalid()),
        }
    }
}

impl Allow {
    /// Allows the URLs of one origin, whatever its host resolves to, and no other URL that leads to the same address.
    ///
    /// # Errors
    /// `url` is not a URL with a host.
    pub fn origin(url: &str) -> Result<Self, InvalidAllow> {
        let parsed = Url::parse(url).map_err(|_| InvalidAllow(url.to_owned()))?;
        match parsed.origin() {
            origin @ Origin::Tuple(..) => Ok(Self(Pattern::Origin(origin))),
            Origin::Opaque(_) => Err(InvalidAllow(url.to_owned())),
        }
    }

    /// Returns whether a URL's host matches, by name or as a literal address.
    pub(crate) fn matches_url(&self, url: &Url) -> bool {
        match (&self.0, url.host()) {
            (Pattern::Network(network), Some(Host::Ipv4(address))) => network.contains(&IpAddr::V4(address)),
            (Pattern::Network(network), Some(Host::Ipv6(address))) => network.contains(&IpAddr::V6(address)),
            (Pattern::Host { name, includes_subdomains, port }, Some(Host::Domain(host))) => {
                let matches_name = if *includes_subdomains {
                    host.strip_suffix(name.as_str()).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
                } else {
                    host == name
                };
                matches_name && port.is_none_or(|port| url.port_or_known_default() == Some(port))
            }
            (Pattern::Origin(origin), _) => url.origin() == *origin,
            _ => false,
        }
    }

    /// Returns whether an address from DNS matches.
    pub(crate) fn matches_address(&self, address: IpAddr) -> bool {
        matches!(&self.0, Pattern::Network(network) if network.contains(&address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(entry: &str, url: &str) -> bool {
        entry.parse::<Allow>().unwrap().matches_url(&url.parse().unwrap())
    }

    #[test]
    fn a_name_matches_exactly_below_its_wildcard_and_on_its_port() {
        assert!(matches("hooks.internal", "http://HOOKS.internal:81/x"));
        assert!(!matches("hooks.internal", "http://a.hooks.internal"));
        assert!(matches("hooks.internal:8080", "http://hooks.internal:8080"));
        assert!(!matches("hooks.internal:8080", "http://hooks.internal"));
        assert!(matches("hooks.internal:443", "https://hooks.internal"));
        assert!(matches("*.internal", "http://a.b.internal"));
        assert!(!matches("*.internal", "http://internal"));
        assert!(!matches("*.internal", "http://eviinternal"));
    }

    #[test]
    fn a_network_matches_every_spelling_of_its_addresses() {
        for url in ["http://127.0.0.1:3000", "http://127.1", "http://0x7f.1", "http://2130706433"] {
            assert!(matches("127.0.0.0/8", url), "{url}");
        }
        assert!(matches("::1", "http://[::1]:80"));
        assert!(!matches("127.0.0.0/8", "http://localhost"));
        assert!("127.0.0.0/8".parse::<Allow>().unwrap().matches_address([127, 9, 9, 9].into()));
    }

    #[test]
    fn an_origin_matches_its_scheme_host_and_port_alone() {
        let matches =
            |origin: &str, url: &str| Allow::origin(origin).unwrap().matches_url(&url.parse().unwrap());
        assert!(matches("http://127.0.0.1:8080", "http://127.1:8080/x?y"));
        assert!(matches("https://app.example.com/", "https://app.example.com:443"));
        for url in
            ["http://127.0.0.1:8081", "https://127.0.0.1:8080", "http://localhost:8080", "http://[::1]:8080"]
        {
            assert!(!matches("http://127.0.0.1:8080", url), "{url}");
        }
        assert!(!Allow::origin("http://127.0.0.1:8080").unwrap().matches_address([127, 0, 0, 1].into()));
        assert!(Allow::origin("data:x").is_err() && Allow::origin("app.example.com").is_err());
    }

    #[test]
    fn an_entry_that_is_neither_a_network_nor_a_host_is_refused() {
        for entry in ["", "http://x", "a b", "host:port", "*"] {
            assert!(entry.parse::<Allow>().is_err(), "{entry}");
        }
    }
}
