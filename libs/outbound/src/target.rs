//! What can be said of a target before anything is looked up.

use std::net::{IpAddr, Ipv4Addr};

use url::{Host, Url};

use crate::{Allow, Error, Refusal, address};

/// Whether a target may be called, as far as that can be said before its name is looked up: for whoever takes addresses
/// from users.
///
/// # Errors
/// Why it would be refused, whenever it is called.
pub fn check_target(url: &str, allow: &[Allow]) -> Result<(), Refusal> {
    match Target::read(url, allow) {
        Err(Error::RefusedTarget { reason }) => Err(reason),
        _ => Ok(()),
    }
}

/// A URL that may be called as far as it can be read.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) url: Url,
    /// Allow-listed: wherever its name leads is right.
    pub(crate) open: bool,
}

impl Target {
    pub(crate) fn read(url: &str, allow: &[Allow]) -> Result<Self, Error> {
        let refused = |reason| Error::RefusedTarget { reason };
        // The parser turns every spelling of an address (0x7f.1, 2130706433, fullwidth digits) into the address.
        let url = Url::parse(url).map_err(|_| refused(Refusal::NotAUrl))?;
        let host = url.host().ok_or(refused(Refusal::NotAUrl))?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(refused(Refusal::Credentials));
        }
        let open = allow.iter().any(|entry| entry.covers(&url));
        match url.scheme() {
            "https" => {}
            "http" if open => {}
            _ => return Err(refused(Refusal::NotHttps)),
        }
        let literal = match host {
            Host::Ipv4(address) => Some(IpAddr::V4(address)),
            Host::Ipv6(address) => Some(IpAddr::V6(address)),
            // Whatever a resolver makes of it (RFC 6761, 6.3).
            Host::Domain(name) if is_localhost(name) => Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            Host::Domain(_) => None,
        };
        if let Some(literal) = literal.filter(|_| !open) {
            address::check(literal).map_err(|kind| refused(kind.into()))?;
        }
        Ok(Self { url, open })
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
        match Target::read(url, &[]) {
            Ok(_) => None,
            Err(Error::RefusedTarget { reason }) => Some(reason),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn only_https_without_credentials_is_called() {
        assert_eq!(refusal("https://example.com:8443/a?b"), None);
        assert_eq!(refusal("http://example.com"), Some(Refusal::NotHttps));
        assert_eq!(refusal("ftp://example.com"), Some(Refusal::NotHttps));
        assert_eq!(refusal("file:///etc/passwd"), Some(Refusal::NotAUrl));
        assert_eq!(refusal("example.com/hook"), Some(Refusal::NotAUrl));
        assert_eq!(refusal("https://user@example.com"), Some(Refusal::Credentials));
        assert_eq!(refusal("https://:secret@example.com"), Some(Refusal::Credentials));
    }

    #[test]
    fn every_spelling_of_an_inner_address_is_seen_through() {
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
    fn an_allow_list_opens_what_it_names_and_nothing_else() {
        let allow = ["127.0.0.0/8".parse().unwrap(), "hooks.internal".parse().unwrap()];
        assert!(Target::read("http://127.0.0.1:3000/x", &allow).unwrap().open);
        assert!(Target::read("http://hooks.internal", &allow).unwrap().open);
        assert!(!Target::read("https://example.com", &allow).unwrap().open);
        assert!(Target::read("http://10.0.0.1", &allow).is_err());
        assert!(Target::read("https://10.0.0.1", &allow).is_err());
        assert!(Target::read("http://user@127.0.0.1", &allow).is_err());
        assert!(Target::read("http://localhost", &["localhost".parse().unwrap()]).unwrap().open);
        assert_eq!(check_target("https://notlocalhost.example", &allow), Ok(()));
        assert_eq!(check_target("http://example.com", &allow), Err(Refusal::NotHttps));
    }
}
