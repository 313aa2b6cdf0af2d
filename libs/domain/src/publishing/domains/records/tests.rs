//! Tests of the comparison.

use std::net::IpAddr;

use super::*;
use crate::domains::CaaRecord;

const OURS: [&str; 3] = ["203.0.113.7", "203.0.113.8", "2001:db8::7"];

fn found(txt: &[&str], aliases: &[&str], addresses: &[&str]) -> Found {
    let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
    let addresses = addresses.iter().map(|address| address.parse().unwrap()).collect();
    Found { txt: texts(txt), aliases: texts(aliases), addresses, ..Found::default() }
}

fn compared(domain: &str, found: Option<&Found>) -> Comparison {
    let addresses: Vec<IpAddr> = OURS.iter().map(|address| address.parse().unwrap()).collect();
    let caa_identities = ["letsencrypt.org".to_owned()];
    let target = Target {
        cname: "edge.test",
        sites_domain: "sites.test",
        addresses: &addresses,
        caa_identities: &caa_identities,
    };
    compare(domain, "proof", &target, found)
}

/// Returns `TYPE value found status` of each record.
fn lines(comparison: &Comparison) -> Vec<String> {
    let line = |record: &Record| {
        let value = record.value.as_deref().unwrap_or("-");
        let status = serde_json::to_value(record.status).unwrap();
        format!("{} {value} [{}] {}", record.r#type, record.found.join(" "), status.as_str().unwrap())
    };
    comparison.records.iter().map(line).collect()
}

#[test]
fn every_state_of_ownership_and_routing_has_its_code() {
    use ErrorCode::*;
    for (domain, found, expected) in [
        ("www.example.com", found(&[], &[], &[]), Some(NoSuchName)),
        ("www.example.com", found(&["proof"], &[], &[]), Some(NoSuchName)),
        ("www.example.com", found(&[], &["edge.test"], &[]), Some(TxtMissing)),
        ("www.example.com", found(&["other"], &["edge.test"], &[]), Some(TxtWrong)),
        ("www.example.com", found(&["other", "proof"], &["edge.test"], &["198.51.100.1"]), None),
        ("www.example.com", found(&["proof"], &["Shop.SITES.test."], &[]), None),
        ("www.example.com", found(&["proof"], &["mid.example.com", "edge.test"], &[]), None),
        ("www.example.com", found(&["proof"], &["evilsites.test"], &[]), Some(CnameWrong)),
        ("www.example.com", found(&["proof"], &["edge.test.evil.test"], &["198.51.100.1"]), Some(CnameWrong)),
        ("www.example.com", found(&["proof"], &["example.com"], &["203.0.113.7"]), None),
        ("www.example.com", found(&["proof"], &[], &["203.0.113.7", "2001:db8::7"]), None),
        ("example.com", found(&["proof"], &[], &["203.0.113.7"]), None),
        ("example.com", found(&["proof"], &[], &["198.51.100.1"]), Some(AddressWrong)),
        ("example.com", found(&["proof"], &[], &["203.0.113.7", "198.51.100.1"]), Some(AddressExtra)),
        ("example.com", found(&["proof"], &[], &["203.0.113.7", "2001:db8::99"]), Some(AddressExtra)),
        ("example.com", found(&["PROOF"], &[], &["203.0.113.7"]), Some(TxtWrong)),
        ("example.com", found(&[" proof"], &[], &["203.0.113.7"]), Some(TxtWrong)),
    ] {
        assert_eq!(compared(domain, Some(&found)).problem, expected, "{domain} {found:?}");
    }
    assert_eq!(compared("example.com", None).problem, None, "before the first check");
}

#[test]
fn a_failed_lookup_is_neither_a_success_nor_a_missing_record() {
    let failed = |found: Found, txt_failure, routing_failure| Found { txt_failure, routing_failure, ..found };
    let (timeout, bogus) = (Some(Failure::Timeout), Some(Failure::Bogus));
    for (found, expected) in [
        (failed(found(&[], &[], &[]), timeout, timeout), Some(ErrorCode::DnsTimeout)),
        (failed(found(&[], &["edge.test"], &[]), timeout, None), Some(ErrorCode::DnsTimeout)),
        // AAAA records may be left over as long as their lookup fails.
        (failed(found(&["proof"], &[], &["203.0.113.7"]), None, timeout), Some(ErrorCode::DnsTimeout)),
        (failed(found(&["proof"], &["edge.test"], &[]), None, timeout), None),
        (failed(found(&["proof"], &["edge.test"], &[]), None, bogus), Some(ErrorCode::DnssecBogus)),
        (failed(found(&[], &[], &[]), None, timeout), Some(ErrorCode::TxtMissing)),
    ] {
        assert_eq!(compared("example.com", Some(&found)).problem, expected, "{found:?}");
    }
}

#[test]
fn a_proxy_in_front_is_named_instead_of_its_addresses() {
    let found = Found { is_proxied: true, ..found(&["proof"], &[], &["198.51.100.1"]) };
    assert_eq!(compared("example.com", Some(&found)).problem, Some(ErrorCode::Proxied));
}

#[test]
fn a_leftover_aaaa_record_is_shown_beside_the_wanted_one() {
    let found = found(&["proof"], &[], &["203.0.113.7", "2001:db8::99"]);
    assert_eq!(
        lines(&compared("example.com", Some(&found))),
        [
            "A 203.0.113.7 [203.0.113.7] ok",
            "A 203.0.113.8 [] missing",
            "AAAA 2001:db8::7 [2001:db8::99] wrong",
            "TXT proof [proof] ok",
        ]
    );
}

#[test]
fn records_show_what_is_found_beside_what_is_wanted() {
    assert_eq!(
        lines(&compared("www.example.com", None)),
        ["CNAME edge.test [] missing", "TXT proof [] missing"]
    );
    let old = found(&["old"], &[], &["198.51.100.1", "2001:db8::99"]);
    assert_eq!(
        lines(&compared("www.example.com", Some(&old))),
        [
            "CNAME edge.test [] missing",
            "A - [198.51.100.1] extra",
            "AAAA - [2001:db8::99] extra",
            "TXT proof [old] wrong",
        ]
    );
    let alias = found(&["proof"], &["old.test"], &["198.51.100.1"]);
    assert_eq!(
        lines(&compared("www.example.com", Some(&alias))),
        ["CNAME edge.test [old.test] wrong", "TXT proof [proof] ok"]
    );
    let two = found(&["proof"], &[], &["203.0.113.7", "198.51.100.1"]);
    assert_eq!(
        lines(&compared("example.com", Some(&two)))[..3],
        ["A 203.0.113.7 [203.0.113.7] ok", "A 203.0.113.8 [] missing", "A - [198.51.100.1] extra"]
    );
}

#[test]
fn caa_records_forbid_the_certificate_and_not_the_domain() {
    let caa = vec![CaaRecord { critical: false, tag: "issue".to_owned(), value: "other.test".to_owned() }];
    let found = Found { caa, ..found(&["proof"], &["edge.test"], &[]) };
    let comparison = compared("www.example.com", Some(&found));
    assert_eq!((comparison.problem, comparison.certificate_problem), (None, Some(ErrorCode::CaaForbids)));
    let unknown = Found { caa: vec![], caa_failure: Some(Failure::Timeout), ..found };
    assert_eq!(compared("www.example.com", Some(&unknown)).certificate_problem, Some(ErrorCode::DnsTimeout));
}
