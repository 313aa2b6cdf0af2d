//! What DNS holds for a domain, as one check saw it.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use super::CaaRecord;

/// The result of the lookups of one check. Stored, so that a later view compares it with what is wanted by then.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Found {
    /// Texts at the name that proves ownership.
    pub txt: Vec<String>,
    /// Names that the domain is an alias of, nearest first.
    pub aliases: Vec<String>,
    /// The domain's addresses, those of its aliases included.
    pub addresses: Vec<IpAddr>,
    /// The CAA records that apply to the domain.
    pub caa: Vec<CaaRecord>,
    /// Addresses of the name that domains point at; looked up only if no addresses are configured.
    pub target_addresses: Vec<IpAddr>,
    /// Why the texts are unknown.
    pub txt_failure: Option<Failure>,
    /// Why aliases or addresses are not all known.
    pub routing_failure: Option<Failure>,
    /// Why the CAA records are unknown.
    pub caa_failure: Option<Failure>,
    /// Whether a proxy of another service answers at the domain's addresses.
    pub is_proxied: bool,
}

/// Why a lookup has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// No usable response came in time.
    Timeout,
    /// The response failed DNSSEC validation.
    Bogus,
}

impl Found {
    /// Returns whether the domain and its proof have no records at all.
    pub fn is_empty(&self) -> bool {
        self.txt.is_empty() && self.aliases.is_empty() && self.addresses.is_empty()
    }

    /// Returns whether any lookup failed DNSSEC validation.
    pub fn is_bogus(&self) -> bool {
        [self.txt_failure, self.routing_failure].contains(&Some(Failure::Bogus))
    }

    /// Returns whether an earlier check found a proxy where the domain still leads. A check on behalf of a waiting caller has
    /// no time to ask again.
    pub fn is_still_proxied(&self, before: &Self) -> bool {
        before.is_proxied && (&before.aliases, &before.addresses) == (&self.aliases, &self.addresses)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_is_remembered_until_the_domain_leads_elsewhere() {
        let before =
            Found { addresses: vec!["198.51.100.1".parse().unwrap()], is_proxied: true, ..Found::default() };
        let same = Found { txt: vec!["proof".to_owned()], is_proxied: false, ..before.clone() };
        assert!(same.is_still_proxied(&before));
        assert!(!before.is_still_proxied(&same), "none was found");
        for elsewhere in [
            Found { addresses: vec![], ..same.clone() },
            Found { aliases: vec!["other.test".to_owned()], ..same },
        ] {
            assert!(!elsewhere.is_still_proxied(&before), "{elsewhere:?}");
        }
    }
}
