//! Checks a target URL before DNS resolution.

use std::net::{IpAddr, Ipv4Addr};

use url::{Host, Url};

use crate::{Allow, Error, Refusal, address};

/// Checks a URL that a user enters, as far as possible without DNS resolution. An error is the reason for which every call
/// would be refused.
pub fn check_target(url: &str, allow: &[Allow]) -> Result<(), Refusal> {
    match Target::parse(url, allow) {
        Err(Error::RefusedTarget { reason }) => Err(reason),
        _ => Ok(()),
    }
}

/// A parsed and checked URL. Its host name is not resolved yet.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) url: Url,
    /// Whether the target is allow-listed; then its addresses are not checked.
    pub(crate) is_allowed: bool,
}

impl Target {
    pub(crate) fn parse(url: &str, allow: &[Allow]) -> Result<Self, Error> {
        let refused = |reason| Error::RefusedTarget { reason };
        // The parser normalizes every spelling of an address (0x7f.1, 2130706433, fullwidth digits).
        let url = Url::parse(url).map_err(|_| refused(Refusal::NotAUrl))?;
        let host = url.host().ok_or(refused(Refusal::NotAUrl))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(refused(Refusal::Credentials));
        }
        let is_allowed = allow.iter().any(|entry| entry.matches_url(&url));
        match url.scheme() {
            "https" => {}
            "http" if is_allowed => {}
            _ => return Err(refused(Refusal::NotHttps)),
        }
        let literal = match host {
            Host::Ipv4(address) => Some(IpAddr::V4(address)),
            Host::Ipv6(address) => Some(IpAddr::V6(address)),
            // Loopback, whatever a resolver returns (RFC 6761, 6.3).
            Host::Domain(name) if is_localhost(name) => Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            Host::Domain(_) => None,
        };
        if let Some(literal) = literal.filter(|_| !is_allowed) {
            address::check(literal).map_err(|kind| refused(kind.into()))?;
        }
        Ok(Self { url, is_allowed })
    }
}

fn is_localhost(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    name == "localhost" || name.ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::NotPublic;

    fn refusal(url: &str) -> Option<Refusal> {
        match Target::parse(url, &[]) {
            Ok(_) => None,
            Err(Error::RefusedTarget { reason }) => Some(reason),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn only_https_without_credentials_is_allowed() {
        assert_eq!(refusal("https://example.com:8443/a?b"), None);
        assert_eq!(refusal("http://example.com"), Some(Refusal::NotHttps));
        assert_eq!(refusal("ftp://example.com"), Some(Refusal::NotHttps));
        assert_eq!(refusal("file:///etc/passwd"), Some(Refusal::NotAUrl));
        assert_eq!(refusal("example.com/hook"), Some(Refusal::NotAUrl));
        assert_eq!(refusal("https://user@example.com"), Some(Refusal::Credentials));
        assert_eq!(refusal("https://:secret@example.com"), Some(Refusal::Credentials));
    }

    #[test]
    fn every_spelling_of_a_loopback_address_is_recognized() {
        let loopback = [
            "https://127.0.0.1",
            "https://127.1",
            "https://0x7f.1",
            "https://0177.0.0.1",
            "https://2130706433",
            "https://0x7f000001",
            "https://%31%32%37.0.0.1",
            "https://\u{ff11}\u{ff12}\u{ff17}.0.0.1",
            "https://127.0.0.1.",
            "https://[::1]",
            "https://LocalHost:8443",
            "https://a.localhost.",
        ];
        for url in loopback {
            assert_eq!(refusal(url), Some(Refusal::Address(NotPublic::Loopback)), "{url}");
        }
        assert_eq!(refusal("https://[::ffff:127.0.0.1]"), Some(Refusal::Address(NotPublic::Embedding)));
        assert_eq!(refusal("https://169.254.169.254/latest"), Some(Refusal::Address(NotPublic::Metadata)));
        assert_eq!(refusal("https://0/"), Some(Refusal::Address(NotPublic::Unspecified)));
    }

    #[test]
    fn an_allow_list_allows_its_entries_and_nothing_else() {
        let allow = ["127.0.0.0/8".parse().unwrap(), "hooks.internal".parse().unwrap()];
        assert!(Target::parse("http://127.0.0.1:3000/x", &allow).unwrap().is_allowed);
        assert!(Target::parse("http://hooks.internal", &allow).unwrap().is_allowed);
        assert!(!Target::parse("https://example.com", &allow).unwrap().is_allowed);
        assert!(Target::parse("http://10.0.0.1", &allow).is_err());
        assert!(Target::parse("https://10.0.0.1", &allow).is_err());
        assert!(Target::parse("http://user@127.0.0.1", &allow).is_err());
        assert!(Target::parse("http://localhost", &["localhost".parse().unwrap()]).unwrap().is_allowed);
        assert_eq!(check_target("https://notlocalhost.example", &allow), Ok(()));
        assert_eq!(check_target("http://example.com", &allow), Err(Refusal::NotHttps));
    }
}
