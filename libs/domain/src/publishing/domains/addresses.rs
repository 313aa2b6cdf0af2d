//! Where domains must lead: the name and the addresses of this installation's edges.

use std::net::IpAddr;

use super::Found;

/// The target of a domain's records.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// The name for CNAME records.
    pub cname: &'a str,
    /// The domain of all sites; names under it lead to the same edges.
    pub sites_domain: &'a str,
    /// The edges' addresses. If empty, those of `cname` as the check found them.
    pub addresses: &'a [IpAddr],
    /// The names by which CAA records know the certificate authority; empty if any may issue.
    pub caa_identities: &'a [String],
}

/// A domain's addresses, divided into those of this installation and all others.
#[derive(Debug, Default)]
pub struct Divided {
    /// Addresses of this installation's edges.
    pub ours: Vec<IpAddr>,
    /// All others.
    pub foreign: Vec<IpAddr>,
}

impl Target<'_> {
    /// Returns whether a name leads to this installation.
    pub fn is_ours(&self, name: &str) -> bool {
        let is_site = |name: &str| {
            let rest = name.strip_suffix(self.sites_domain);
            rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        let name = name.trim_end_matches('.').to_ascii_lowercase();
        name == self.cname || (!self.sites_domain.is_empty() && is_site(&name))
    }

    /// Returns the addresses that a domain may have.
    pub fn wanted<'f>(&'f self, found: &'f Found) -> &'f [IpAddr] {
        if self.addresses.is_empty() { &found.target_addresses } else { self.addresses }
    }

    /// Divides a domain's addresses.
    pub fn divide(&self, found: &Found) -> Divided {
        let wanted = self.wanted(found);
        let (ours, foreign) = found.addresses.iter().copied().partition(|address| wanted.contains(address));
        Divided { ours, foreign }
    }
}

/// Where the domains of an installation lead.
#[derive(Debug, Clone)]
pub struct Routing {
    /// The name for CNAME records; empty for the name of the site itself.
    pub cname_target: String,
    /// The domain of all sites.
    pub sites_domain: String,
    /// The edges' addresses; empty for those of the CNAME target.
    pub addresses: Vec<IpAddr>,
    /// The names by which CAA records know the certificate authority; empty if any may issue.
    pub caa_identities: Vec<String>,
}

impl Routing {
    /// Returns the name that CNAME records of a subdomain's domains must have.
    pub fn cname(&self, subdomain: &str) -> String {
        match self.cname_target.trim_end_matches('.') {
            "" => format!("{subdomain}.{}", self.sites_domain),
            target => target.to_ascii_lowercase(),
        }
    }

    /// Returns the target with this CNAME.
    pub fn target<'a>(&'a self, cname: &'a str) -> Target<'a> {
        let Self { sites_domain, addresses, caa_identities, .. } = self;
        Target { cname, sites_domain, addresses, caa_identities }
    }
}
