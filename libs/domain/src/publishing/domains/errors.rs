//! Why a domain is not served over https yet, and what its owner must change.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Serialize;

use super::{Found, Target, challenge_name, is_apex};

/// What a domain is waiting for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "DomainErrorCode")]
pub enum ErrorCode {
    /// DNS has no records for the domain.
    NoSuchName,
    /// The DNS servers did not answer in time.
    DnsTimeout,
    /// The domain's DNSSEC signatures are invalid.
    DnssecBogus,
    /// The TXT record is missing.
    TxtMissing,
    /// The TXT record has another value.
    TxtWrong,
    /// The CNAME record leads elsewhere.
    CnameWrong,
    /// No address is one of this service.
    AddressWrong,
    /// Some addresses are not of this service.
    AddressExtra,
    /// A proxy of another service is in front.
    Proxied,
    /// CAA records forbid the certificate.
    CaaForbids,
    /// Another account holds the domain and its proof still stands.
    ClaimedElsewhere,
    /// The certificate authority refused the order.
    AcmeRefused,
    /// A rate limit of the certificate authority is reached.
    AcmeRateLimited,
    /// The certificate authority can't be reached.
    AcmeUnreachable,
    /// This service failed while it ordered the certificate.
    OrderFailed,
}

impl ErrorCode {
    /// Every code.
    pub const ALL: [Self; 15] = [
        Self::NoSuchName,
        Self::DnsTimeout,
        Self::DnssecBogus,
        Self::TxtMissing,
        Self::TxtWrong,
        Self::CnameWrong,
        Self::AddressWrong,
        Self::AddressExtra,
        Self::Proxied,
        Self::CaaForbids,
        Self::ClaimedElsewhere,
        Self::AcmeRefused,
        Self::AcmeRateLimited,
        Self::AcmeUnreachable,
        Self::OrderFailed,
    ];

    /// Returns the code as stored and shown.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoSuchName => "no_such_name",
            Self::DnsTimeout => "dns_timeout",
            Self::DnssecBogus => "dnssec_bogus",
            Self::TxtMissing => "txt_missing",
            Self::TxtWrong => "txt_wrong",
            Self::CnameWrong => "cname_wrong",
            Self::AddressWrong => "address_wrong",
            Self::AddressExtra => "address_extra",
            Self::Proxied => "proxied",
            Self::CaaForbids => "caa_forbids",
            Self::ClaimedElsewhere => "claimed_elsewhere",
            Self::AcmeRefused => "acme_refused",
            Self::AcmeRateLimited => "acme_rate_limited",
            Self::AcmeUnreachable => "acme_unreachable",
            Self::OrderFailed => "order_failed",
        }
    }

    /// Reads a stored code.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.as_str() == word)
    }

    /// Returns whether the check could not find out whether the records stand.
    pub fn is_inconclusive(self) -> bool {
        self == Self::DnsTimeout
    }
}

/// Returns a sentence that says what to change, for a problem that a check of DNS found.
pub fn explain(code: ErrorCode, domain: &str, target: &Target<'_>, found: &Found) -> String {
    let proof = challenge_name(domain);
    match code {
        ErrorCode::NoSuchName => {
            format!("{domain} has no DNS records that lead here. {}", route(domain, target, found))
        }
        ErrorCode::DnsTimeout => {
            format!("The DNS servers of {domain} did not answer in time. The check is repeated by itself.")
        }
        ErrorCode::DnssecBogus => format!(
            "The DNSSEC signatures of {domain} are invalid. Correct them, or remove the DS record at the registrar."
        ),
        ErrorCode::TxtMissing => format!("Add the TXT record {proof} with the value that `records` shows."),
        ErrorCode::TxtWrong => {
            format!("The TXT record {proof} has another value. Set it to the value that `records` shows.")
        }
        ErrorCode::CnameWrong => {
            let alias = found.aliases.first().map_or("another name", String::as_str);
            format!("{domain} is an alias of {alias}. {}", route(domain, target, found))
        }
        ErrorCode::AddressWrong => {
            format!("{domain} leads to {}. {}", foreign(target, found), route(domain, target, found))
        }
        ErrorCode::AddressExtra => {
            let remove = foreign(target, found);
            format!("{domain} also leads to {remove}. Remove these A and AAAA records: all must lead here.")
        }
        ErrorCode::Proxied => format!(
            "A proxy of another service is in front of {domain}. Switch it off for this record (DNS only), so that {domain} \
             leads here directly."
        ),
        ErrorCode::CaaForbids => {
            let identity = target.caa_identities.first().map_or("", String::as_str);
            format!(
                "CAA records of {domain} forbid the certificate. Add this one: {domain}. CAA 0 issue \"{identity}\""
            )
        }
        ErrorCode::ClaimedElsewhere => format!(
            "Another account has proved that {domain} is its own, and its TXT record still stands. Remove all values of {proof} \
             but the one that `records` shows."
        ),
        ErrorCode::AcmeRefused => "The certificate authority refused the order.".to_owned(),
        ErrorCode::AcmeRateLimited => {
            "A limit of certificate orders is reached. The order is repeated by itself.".to_owned()
        }
        ErrorCode::AcmeUnreachable => {
            "The certificate authority can't be reached. The order is repeated by itself.".to_owned()
        }
        ErrorCode::OrderFailed => {
            "This service failed while it ordered the certificate. The order is repeated by itself."
                .to_owned()
        }
    }
}

/// Returns the advice that names the records that lead here.
fn route(domain: &str, target: &Target<'_>, found: &Found) -> String {
    let addresses = target.wanted(found);
    if !is_apex(domain) || addresses.is_empty() {
        return format!("Set its CNAME record to {} and remove other A and AAAA records.", target.cname);
    }
    let mut text = "Set its A and AAAA records to ".to_owned();
    for (position, address) in addresses.iter().enumerate() {
        let separator = if position == 0 { "" } else { ", " };
        let _infallible = write!(text, "{separator}{address}");
    }
    text.push_str(" only.");
    text
}

/// Returns the addresses that are not ours, the first few of them.
fn foreign(target: &Target<'_>, found: &Found) -> String {
    const SHOWN: usize = 4;
    let foreign = target.divide(found).foreign;
    let mut shown: Vec<_> = foreign.iter().take(SHOWN).map(ToString::to_string).collect();
    if foreign.len() > SHOWN {
        shown.push("more".to_owned());
    }
    shown.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_read_as_they_are_written() {
        for code in ErrorCode::ALL {
            assert_eq!(ErrorCode::parse(code.as_str()), Some(code));
            assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
        }
        assert_eq!(ErrorCode::parse("other"), None);
    }

    #[test]
    fn a_sentence_names_the_records_to_change() {
        let ours = ["203.0.113.7".parse().unwrap()];
        let identities = ["letsencrypt.org".to_owned()];
        let target = Target {
            cname: "edge.test",
            sites_domain: "sites.test",
            addresses: &ours,
            caa_identities: &identities,
        };
        let found = Found {
            aliases: vec!["other.test".to_owned()],
            addresses: vec!["203.0.113.7".parse().unwrap(), "2001:db8::1".parse().unwrap()],
            ..Found::default()
        };
        for (code, domain, part) in [
            (ErrorCode::AddressExtra, "example.com", "leads to 2001:db8::1. Remove"),
            (ErrorCode::AddressWrong, "example.com", "A and AAAA records to 203.0.113.7 only"),
            (
                ErrorCode::CnameWrong,
                "www.example.com",
                "alias of other.test. Set its CNAME record to edge.test",
            ),
            (ErrorCode::CaaForbids, "example.com", "example.com. CAA 0 issue \"letsencrypt.org\""),
            (ErrorCode::TxtMissing, "example.com", "_webruntime.example.com"),
        ] {
            let sentence = explain(code, domain, &target, &found);
            assert!(sentence.contains(part), "{sentence}");
        }
    }
}
