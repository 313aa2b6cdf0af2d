//! Which host a request is for.

use domain::addresses::Addresses;
use http::{HeaderMap, Uri, header};

/// The host asked for, in lower case and without its port. A target that names it itself goes before the
/// header (RFC 9112, 3.2.2). `None` if the header stands there twice: whoever passed the request on to us may
/// have gone by the other one.
pub(crate) fn asked(headers: &HeaderMap, uri: &Uri) -> Option<String> {
    Some(without_port(written(headers, uri)?).trim_end_matches('.').to_ascii_lowercase())
}

/// What stands for the host, as it was written.
pub(crate) fn written<'a>(headers: &'a HeaderMap, uri: &'a Uri) -> Option<&'a str> {
    let mut values = headers.get_all(header::HOST).iter();
    let header = values.next().map(|value| value.to_str().unwrap_or_default()).unwrap_or_default();
    if values.next().is_some() {
        return None;
    }
    Some(uri.authority().map_or(header, http::uri::Authority::as_str))
}

/// The host in what was written, if it is written as hosts are kept.
pub(crate) fn plain(written: &str) -> Option<&str> {
    let host = without_port(written);
    let is_plain = !host.ends_with('.') && !host.bytes().any(|byte| byte.is_ascii_uppercase());
    is_plain.then_some(host)
}

fn without_port(authority: &str) -> &str {
    let port = authority.rfind(':').filter(|at| authority[at + 1..].bytes().all(|c| c.is_ascii_digit()));
    &authority[..port.unwrap_or(authority.len())]
}

/// A host as it is looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SiteHost<'a> {
    /// A subdomain, or a name that was one.
    Subdomain(&'a str),
    /// Somebody's own domain, perhaps.
    Custom(&'a str),
}

impl<'a> SiteHost<'a> {
    pub(super) fn key(self) -> &'a str {
        match self {
            Self::Subdomain(name) | Self::Custom(name) => name,
        }
    }

    /// Visitors may write anything: what can be no name or domain is not asked about. Reserved names may be in
    /// use: whoever runs the system may have given one away.
    pub(super) fn could_be(self) -> bool {
        match self {
            Self::Subdomain(name) => {
                domain::subdomains::check("host", name).iter().all(|error| error.code == "reserved")
            }
            Self::Custom(host) => domain::domains::read(host, &[]).is_ok_and(|read| read == host),
        }
    }
}

/// Whose a host is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HostKind<'a> {
    /// The base host: the API, forms, short addresses.
    Base,
    /// Some site's, if there is one.
    Site(SiteHost<'a>),
    /// Of nobody here.
    Unknown,
}

/// Classifies a host that is written in lower case and without a port.
pub(crate) fn classify_host<'a>(addresses: &Addresses, host: &'a str) -> HostKind<'a> {
    if let Some(name) = addresses.subdomain_of(host) {
        return HostKind::Site(SiteHost::Subdomain(name));
    }
    if host == addresses.base_host() || (addresses.is_local() && is_loopback(host)) {
        return HostKind::Base;
    }
    // A custom domain has a dot; what has none could be taken for a subdomain's name.
    if host.contains('.') { HostKind::Site(SiteHost::Custom(host)) } else { HostKind::Unknown }
}

fn is_loopback(host: &str) -> bool {
    host == "127.0.0.1" || host == "[::1]" || host == "localhost"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(hosts: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for host in hosts {
            headers.append(header::HOST, host.parse().unwrap());
        }
        headers
    }

    fn asked(hosts: &[&str], target: &'static str) -> Option<String> {
        super::asked(&headers(hosts), &Uri::from_static(target))
    }

    #[test]
    fn a_host_is_read_without_port_and_case() {
        for (written, host) in [
            ("A-b.LocalHost:8080", "a-b.localhost"),
            ("a.test.", "a.test"),
            ("[::1]:8080", "[::1]"),
            ("[::1]", "[::1]"),
        ] {
            assert_eq!(asked(&[written], "/").as_deref(), Some(host));
        }
        assert_eq!(asked(&[], "/").as_deref(), Some(""));
    }

    #[test]
    fn a_target_with_a_host_goes_before_the_header() {
        assert_eq!(asked(&[], "http://x.test:1/").as_deref(), Some("x.test"));
        assert_eq!(asked(&["y.test"], "http://x.test/").as_deref(), Some("x.test"));
    }

    #[test]
    fn two_hosts_are_none() {
        assert_eq!(asked(&["x.test", "y.test"], "/"), None);
        assert_eq!(asked(&["x.test", "x.test"], "/"), None);
    }

    #[test]
    fn what_is_read_plainly_is_what_is_read_otherwise_or_nothing() {
        let uri = Uri::from_static("/");
        for (written, plain) in [
            ("a.test", Some("a.test")),
            ("a.test:8080", Some("a.test")),
            ("A.test", None),
            ("a.test.", None),
            ("a.test.:1", None),
        ] {
            let headers = headers(&[written]);
            assert_eq!(super::plain(written), plain, "{written}");
            assert!(plain.is_none() || super::asked(&headers, &uri).as_deref() == plain);
        }
    }
}
