//! The DNS records that a domain needs, compared with those that a check found.

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::Serialize;

use super::{ErrorCode, Failure, Found, Target, allows_issue, challenge_name, is_apex};

/// A DNS record that the owner must publish or remove.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "DnsRecord")]
pub struct Record {
    /// `TXT`, `CNAME`, `A` or `AAAA`.
    pub r#type: &'static str,
    /// Full name of the record.
    pub name: String,
    /// Value that the record must have; null for records to remove. One of several addresses is enough.
    pub value: Option<String>,
    /// Values that the last check found; empty before the first one.
    pub found: Vec<String>,
    /// Whether it stands.
    pub status: RecordStatus,
}

/// How a record found compares with the one wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "DnsRecordStatus")]
pub enum RecordStatus {
    /// It has the wanted value.
    Ok,
    /// It does not exist.
    Missing,
    /// It has another value.
    Wrong,
    /// It must be removed.
    Extra,
}

/// What a check means for one account's claim to a domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comparison {
    /// The records for routing, then the proof of ownership.
    pub records: Vec<Record>,
    /// The first problem of ownership or routing.
    pub problem: Option<ErrorCode>,
    /// Why a certificate can't be ordered although there is no problem.
    pub certificate_problem: Option<ErrorCode>,
}

/// Compares what a check found with what a domain needs. `None` before the first check.
pub fn compare(domain: &str, challenge: &str, target: &Target<'_>, found: Option<&Found>) -> Comparison {
    let nothing = Found::default();
    let is_checked = found.is_some();
    let found = found.unwrap_or(&nothing);
    let mut records = routing(domain, target, found);
    records.push(proof(domain, challenge, found));
    Comparison {
        records,
        problem: is_checked.then(|| problem(challenge, target, found)).flatten(),
        certificate_problem: is_checked.then(|| certificate_problem(target, found)).flatten(),
    }
}

fn proof(domain: &str, challenge: &str, found: &Found) -> Record {
    let status = match &found.txt[..] {
        [] => RecordStatus::Missing,
        txt if txt.iter().any(|text| text == challenge) => RecordStatus::Ok,
        _ => RecordStatus::Wrong,
    };
    let name = challenge_name(domain);
    Record { r#type: "TXT", name, value: Some(challenge.to_owned()), found: found.txt.clone(), status }
}

fn routing(domain: &str, target: &Target<'_>, found: &Found) -> Vec<Record> {
    let wanted = target.wanted(found);
    let addresses = target.divide(found);
    let is_alias = found.aliases.iter().any(|alias| target.is_ours(alias));
    let by_address = !is_alias && !wanted.is_empty() && (is_apex(domain) || !addresses.ours.is_empty());
    if by_address {
        return [false, true]
            .into_iter()
            .flat_map(|is_v6| address_records(domain, is_v6, wanted, found))
            .collect();
    }
    let status = match found.aliases.is_empty() {
        _ if is_alias => RecordStatus::Ok,
        true => RecordStatus::Missing,
        false => RecordStatus::Wrong,
    };
    let alias = found.aliases.iter().find(|alias| target.is_ours(alias)).or(found.aliases.first());
    let value = match (is_alias, alias) {
        // Any name that leads here is fine.
        (true, Some(alias)) => alias.clone(),
        _ => target.cname.to_owned(),
    };
    let found_alias = alias.into_iter().cloned().collect();
    let name = domain.to_owned();
    let mut records = vec![Record { r#type: "CNAME", name, value: Some(value), found: found_alias, status }];
    if found.aliases.is_empty() {
        let extra = [false, true].into_iter().filter_map(|is_v6| extra(domain, is_v6, &addresses.foreign));
        records.extend(extra);
    }
    records
}

/// Returns the records of one address family.
fn address_records(domain: &str, is_v6: bool, wanted: &[IpAddr], found: &Found) -> Vec<Record> {
    let of_family = |addresses: &[IpAddr]| -> Vec<IpAddr> {
        addresses.iter().copied().filter(|address| address.is_ipv6() == is_v6).collect()
    };
    let (wanted, found) = (of_family(wanted), of_family(&found.addresses));
    let (ours, foreign): (Vec<_>, Vec<_>) = found.into_iter().partition(|address| wanted.contains(address));
    let is_replaced = ours.is_empty() && !foreign.is_empty();
    let record = |address: &IpAddr| {
        let (found, status) = match ours.contains(address) {
            true => (vec![address.to_string()], RecordStatus::Ok),
            false if is_replaced => (texts(&foreign), RecordStatus::Wrong),
            false => (vec![], RecordStatus::Missing),
        };
        let value = Some(address.to_string());
        Record { r#type: family(is_v6), name: domain.to_owned(), value, found, status }
    };
    let mut records: Vec<_> = wanted.iter().map(record).collect();
    if wanted.is_empty() || !ours.is_empty() {
        records.extend(extra(domain, is_v6, &foreign));
    }
    records
}

/// Returns the record to remove, if there are foreign addresses of this family.
fn extra(domain: &str, is_v6: bool, foreign: &[IpAddr]) -> Option<Record> {
    let found: Vec<_> = foreign.iter().copied().filter(|address| address.is_ipv6() == is_v6).collect();
    (!found.is_empty()).then(|| Record {
        r#type: family(is_v6),
        name: domain.to_owned(),
        value: None,
        found: texts(&found),
        status: RecordStatus::Extra,
    })
}

fn texts(addresses: &[IpAddr]) -> Vec<String> {
    addresses.iter().map(ToString::to_string).collect()
}

fn family(is_v6: bool) -> &'static str {
    if is_v6 { "AAAA" } else { "A" }
}

fn problem(challenge: &str, target: &Target<'_>, found: &Found) -> Option<ErrorCode> {
    if found.is_bogus() {
        return Some(ErrorCode::DnssecBogus);
    }
    let failed = found.txt_failure.or(found.routing_failure).is_some();
    if found.is_empty() && !failed {
        return Some(ErrorCode::NoSuchName);
    }
    if !found.txt.iter().any(|text| text == challenge) {
        return Some(match (found.txt_failure, found.txt.is_empty()) {
            (Some(_), _) => ErrorCode::DnsTimeout,
            (None, true) => ErrorCode::TxtMissing,
            (None, false) => ErrorCode::TxtWrong,
        });
    }
    if found.aliases.iter().any(|alias| target.is_ours(alias)) {
        return None;
    }
    let addresses = target.divide(found);
    match (addresses.ours.is_empty(), addresses.foreign.is_empty()) {
        (false, false) => Some(ErrorCode::AddressExtra),
        (_, _) if found.routing_failure.is_some() => Some(ErrorCode::DnsTimeout),
        (false, true) => None,
        (true, _) if found.is_proxied => Some(ErrorCode::Proxied),
        (true, _) if !found.aliases.is_empty() => Some(ErrorCode::CnameWrong),
        (true, false) => Some(ErrorCode::AddressWrong),
        (true, true) => Some(ErrorCode::NoSuchName),
    }
}

fn certificate_problem(target: &Target<'_>, found: &Found) -> Option<ErrorCode> {
    if target.caa_identities.is_empty() {
        return None;
    }
    match found.caa_failure {
        Some(Failure::Bogus) => Some(ErrorCode::DnssecBogus),
        Some(Failure::Timeout) => Some(ErrorCode::DnsTimeout),
        None => (!allows_issue(&found.caa, target.caa_identities)).then_some(ErrorCode::CaaForbids),
    }
}

#[cfg(test)]
mod tests;
