//! Which certificate a handshake needs, by the name that the client asks for.

use std::borrow::Cow;

use domain::addresses::Addresses;

use crate::sites::classify_host::{HostKind, SiteHost, classify_host};

/// Returns the name of the certificate for a host in lower case; without a host, that of the base host. Sites share a
/// wildcard. `None` if no certificate can have this name, so that nothing is looked up.
pub(crate) fn certificate_name<'a>(addresses: &'a Addresses, host: Option<&'a str>) -> Option<Cow<'a, str>> {
    let Some(host) = host else { return Some(addresses.base_host().into()) };
    if host == addresses.base_host() {
        return Some(host.into());
    }
    match classify_host(addresses, host) {
        HostKind::Base => Some(addresses.base_host().into()),
        HostKind::Site(SiteHost::Subdomain(_) | SiteHost::Preview(_)) => {
            Some(format!("*.{}", addresses.sites_domain()).into())
        }
        HostKind::Site(custom @ SiteHost::Custom(_)) => custom.is_valid().then(|| host.into()),
        HostKind::Unknown => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_to_the_base_hosts_certificate_the_wildcard_or_their_own() {
        let addresses = Addresses::new("https://app.example.com", "sites.example.net").unwrap();
        let name = |host: Option<&str>| certificate_name(&addresses, host).map(Cow::into_owned);
        for (host, expected) in [
            (None, "app.example.com"),
            (Some("app.example.com"), "app.example.com"),
            (Some("quiet-otter.sites.example.net"), "*.sites.example.net"),
            (Some("mzxw6ytbmzxw6ytb--quiet-otter.sites.example.net"), "*.sites.example.net"),
            (Some("a.b.sites.example.net"), "a.b.sites.example.net"),
            (Some("shop.example.org"), "shop.example.org"),
            (Some("xn--bcher-kva.example"), "xn--bcher-kva.example"),
        ] {
            assert_eq!(name(host).as_deref(), Some(expected), "{host:?}");
        }
        let long = format!("{}.example.org", "a".repeat(64));
        for host in ["localhost", "a_b.example.org", "-a.example.org", "*.example.org", "10.0.0.1", &long] {
            assert_eq!(name(Some(host)), None, "{host}");
        }
    }
}
