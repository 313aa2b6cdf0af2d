//! Reads the requested host and classifies it: the base host, a site's, or unknown.

use domain::addresses::Addresses;
use domain::previews::PreviewLabel;
use http::{HeaderMap, Uri, Version, header};

use crate::metrics::HostLabel;

/// The kind of a requested host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HostKind<'a> {
    /// The base host, with the API, forms and short URLs.
    Base,
    /// A host that may have a site.
    Site(SiteHost<'a>),
    Unknown,
}

/// A host, as the site cache looks it up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SiteHost<'a> {
    /// The current or a former name of a subdomain.
    Subdomain(&'a str),
    /// The host of a preview, which is not live.
    Preview(PreviewLabel<'a>),
    /// A custom domain.
    Custom(&'a str),
}

impl HostKind<'_> {
    /// Returns its label in metrics.
    pub(crate) fn label(self) -> HostLabel {
        match self {
            Self::Base => HostLabel::Base,
            Self::Site(host) => host.label(),
            Self::Unknown => HostLabel::Unknown,
        }
    }
}

impl<'a> SiteHost<'a> {
    /// Returns its label in metrics.
    pub(crate) fn label(self) -> HostLabel {
        match self {
            Self::Subdomain(_) | Self::Preview(_) => HostLabel::Subdomain,
            Self::Custom(_) => HostLabel::Custom,
        }
    }

    /// Returns the cache key.
    pub(super) fn key(self) -> &'a str {
        match self {
            Self::Subdomain(name) | Self::Custom(name) => name,
            Self::Preview(preview) => preview.label,
        }
    }

    /// Returns whether a site can have this host; others are not looked up, as clients may send anything. Reserved names
    /// are valid: the operator may have assigned one.
    pub(crate) fn is_valid(self) -> bool {
        match self {
            Self::Subdomain(name) | Self::Preview(PreviewLabel { subdomain: name, .. }) => {
                domain::subdomains::check("host", name).iter().all(|error| error.code == "reserved")
            }
            Self::Custom(host) => domain::domains::read(host, &[]).is_ok_and(|read| read == host),
        }
    }
}

/// Classifies a host that is in lower case and without a port.
pub(crate) fn classify_host<'a>(addresses: &Addresses, host: &'a str) -> HostKind<'a> {
    if let Some(name) = addresses.subdomain_of(host) {
        let preview = PreviewLabel::parse(name).map(SiteHost::Preview);
        return HostKind::Site(preview.unwrap_or(SiteHost::Subdomain(name)));
    }
    let is_loopback = matches!(host, "127.0.0.1" | "[::1]" | "localhost");
    if host == addresses.base_host() || (addresses.is_local() && is_loopback) {
        return HostKind::Base;
    }
    // A custom domain has a dot. A host without one could be mistaken for a subdomain's name.
    if host.contains('.') { HostKind::Site(SiteHost::Custom(host)) } else { HostKind::Unknown }
}

/// Returns the requested host in lower case and without its port; `None` if it is ambiguous.
pub(crate) fn requested_host(version: Version, headers: &HeaderMap, uri: &Uri) -> Option<String> {
    Some(without_port(raw_host(version, headers, uri)?).trim_end_matches('.').to_ascii_lowercase())
}

/// Returns the requested host as written. A host in the request target takes precedence over the header (RFC 9112, 3.2.2).
///
/// Returns `None` for a request that a proxy in front may have routed by another host: with two headers; over HTTP/2, with a
/// header that differs from `:authority` (RFC 9113, 8.3.1); or with a target that is only an authority, as in CONNECT.
pub(crate) fn raw_host<'a>(version: Version, headers: &'a HeaderMap, uri: &'a Uri) -> Option<&'a str> {
    let mut values = headers.get_all(header::HOST).iter();
    let header = values.next().map(|value| value.to_str().unwrap_or_default()).unwrap_or_default();
    if values.next().is_some() {
        return None;
    }
    let Some(authority) = uri.authority() else { return Some(header) };
    let scheme = uri.scheme_str()?;
    let is_same = || header.is_empty() || is_same_authority(scheme, authority.as_str(), header);
    (version != Version::HTTP_2 || is_same()).then_some(authority.as_str())
}

fn is_same_authority(scheme: &str, one: &str, other: &str) -> bool {
    let default_port = if scheme == "https" { ":443" } else { ":80" };
    let [one, other] =
        [one, other].map(|authority| authority.strip_suffix(default_port).unwrap_or(authority));
    one.eq_ignore_ascii_case(other)
}

/// Returns a written host without its port, if it is in normal form: in lower case, without a final dot.
pub(crate) fn normalized_host(raw_host: &str) -> Option<&str> {
    let host = without_port(raw_host);
    let is_normal = !host.ends_with('.') && !host.bytes().any(|byte| byte.is_ascii_uppercase());
    is_normal.then_some(host)
}

/// Returns a written host without its port.
pub(crate) fn without_port(authority: &str) -> &str {
    let port = authority.rfind(':').filter(|at| authority[at + 1..].bytes().all(|c| c.is_ascii_digit()));
    &authority[..port.unwrap_or(authority.len())]
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

    fn requested(hosts: &[&str], target: &'static str) -> Option<String> {
        requested_host(Version::HTTP_11, &headers(hosts), &Uri::from_static(target))
    }

    #[test]
    fn a_host_is_read_without_port_and_case() {
        for (raw, host) in [
            ("A-b.LocalHost:8080", "a-b.localhost"),
            ("a.test.", "a.test"),
            ("[::1]:8080", "[::1]"),
            ("[::1]", "[::1]"),
        ] {
            assert_eq!(requested(&[raw], "/").as_deref(), Some(host));
        }
        assert_eq!(requested(&[], "/").as_deref(), Some(""));
    }

    #[test]
    fn a_host_in_the_target_precedes_the_header() {
        assert_eq!(requested(&[], "http://x.test:1/").as_deref(), Some("x.test"));
        assert_eq!(requested(&["y.test"], "http://x.test/").as_deref(), Some("x.test"));
    }

    #[test]
    fn two_host_headers_are_rejected() {
        assert_eq!(requested(&["x.test", "y.test"], "/"), None);
        assert_eq!(requested(&["x.test", "x.test"], "/"), None);
    }

    #[test]
    fn an_authority_without_scheme_is_rejected() {
        assert_eq!(requested(&["x.test"], "x.test:80"), None);
        assert_eq!(requested(&[], "x.test"), None);
    }

    #[test]
    fn a_host_over_http2_must_be_that_of_the_authority() {
        let requested = |host: &str, target: &'static str| {
            requested_host(Version::HTTP_2, &headers(&[host]), &Uri::from_static(target))
        };
        for host in ["x.test", "X.test", "x.test:80"] {
            assert_eq!(requested(host, "http://x.test/").as_deref(), Some("x.test"), "{host}");
        }
        assert_eq!(requested("x.test", "https://x.test:443/").as_deref(), Some("x.test"));
        for host in ["y.test", "x.test:81", "x.test.", "x.test:443"] {
            assert_eq!(requested(host, "http://x.test/"), None, "{host}");
        }
    }

    #[test]
    fn the_host_of_a_preview_is_no_subdomain() {
        let addresses = Addresses::new("https://app.example.com", "sites.example.net").unwrap();
        let kind = |label: &str| {
            let host = format!("{label}.sites.example.net");
            match classify_host(&addresses, &host) {
                HostKind::Site(host) => {
                    let is_preview = matches!(host, SiteHost::Preview(_));
                    assert_eq!(host.key(), label);
                    (is_preview, host.is_valid())
                }
                other => panic!("{label}: {other:?}"),
            }
        };
        assert_eq!(kind("mzxw6ytbmzxw6ytb--quiet-otter"), (true, true));
        assert_eq!(kind("quiet-otter"), (false, true));
        assert_eq!(kind("mzxw6ytbmzxw6ytb--quiet--otter"), (true, false));
        assert_eq!(kind("mzxw6ytbmzxw6ytb--ab"), (true, false));
        assert_eq!(kind("mzxw6ytb--quiet-otter"), (false, false));
    }

    #[test]
    fn a_normalized_host_equals_the_requested_host() {
        let uri = Uri::from_static("/");
        for (raw, normal) in [
            ("a.test", Some("a.test")),
            ("a.test:8080", Some("a.test")),
            ("A.test", None),
            ("a.test.", None),
            ("a.test.:1", None),
        ] {
            let headers = headers(&[raw]);
            assert_eq!(normalized_host(raw), normal, "{raw}");
            assert!(
                normal.is_none() || requested_host(Version::HTTP_11, &headers, &uri).as_deref() == normal
            );
        }
    }
}
