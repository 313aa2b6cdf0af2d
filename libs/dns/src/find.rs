//! The lookups of one check.

use std::net::IpAddr;
use std::time::Duration;

use domain::domains::{CaaRecord, Failure, Found, Target, challenge_name, tree};
use hickory_resolver::proto::rr::{RData, Record, RecordType};
use tokio::time::timeout;

use crate::Resolver;

/// The longest time that a check takes.
pub const CHECK_TIMEOUT: Duration = Duration::from_secs(4);
/// Values of one kind that are stored.
const MAX_VALUES: usize = 20;
/// Characters of a value that are stored. The longest domain name is shorter.
const MAX_CHARS: usize = 255;

impl Resolver {
    /// Looks up everything that decides on a domain, at the same time.
    pub async fn find(&self, domain: &str, target: &Target<'_>) -> Found {
        let (txt, routing, caa, target_addresses) = tokio::join!(
            bounded(self.texts(domain)),
            self.routing(domain),
            bounded(self.caa(domain)),
            self.target_addresses(target),
        );
        let (aliases, addresses, routing_failure) = routing;
        Found {
            txt_failure: txt.as_ref().err().copied(),
            txt: txt.unwrap_or_default(),
            aliases,
            addresses,
            routing_failure: routing_failure.or(target_addresses.as_ref().err().copied()),
            caa_failure: caa.as_ref().err().copied(),
            caa: caa.unwrap_or_default(),
            target_addresses: target_addresses.unwrap_or_default(),
            is_proxied: false,
        }
    }

    async fn texts(&self, domain: &str) -> Result<Vec<String>, Failure> {
        let records = self.lookup(&challenge_name(domain), RecordType::TXT).await?;
        let text = |record: &Record| match &record.data {
            RData::TXT(txt) => Some(cleaned(&txt.txt_data.concat())),
            _ => None,
        };
        Ok(records.iter().filter_map(text).take(MAX_VALUES).collect())
    }

    /// Returns aliases, addresses, and why some are unknown.
    async fn routing(&self, domain: &str) -> (Vec<String>, Vec<IpAddr>, Option<Failure>) {
        let (alias, v4, v6) = tokio::join!(
            bounded(self.lookup(domain, RecordType::CNAME)),
            bounded(self.lookup(domain, RecordType::A)),
            bounded(self.lookup(domain, RecordType::AAAA)),
        );
        let failures = [&alias, &v4, &v6].map(|result| result.as_ref().err().copied());
        let is_bogus = failures.contains(&Some(Failure::Bogus));
        let failure = failures.into_iter().flatten().next();
        let records: Vec<_> = [alias, v4, v6].into_iter().flat_map(Result::unwrap_or_default).collect();
        let mut aliases = vec![];
        let mut addresses = vec![];
        for record in &records {
            match &record.data {
                RData::CNAME(alias) => {
                    let alias =
                        cleaned(alias.0.to_ascii().trim_end_matches('.').as_bytes()).to_ascii_lowercase();
                    if !aliases.contains(&alias) {
                        aliases.push(alias);
                    }
                }
                RData::A(address) => addresses.push(IpAddr::V4(address.0)),
                RData::AAAA(address) => addresses.push(IpAddr::V6(address.0)),
                _ => {}
            }
        }
        addresses.sort_unstable();
        addresses.dedup();
        aliases.truncate(MAX_VALUES);
        addresses.truncate(MAX_VALUES);
        (aliases, addresses, if is_bogus { Some(Failure::Bogus) } else { failure })
    }

    /// Returns the nearest CAA records up the tree. Lookups follow aliases, as an authority does.
    async fn caa(&self, domain: &str) -> Result<Vec<CaaRecord>, Failure> {
        for name in tree(domain) {
            let records = self.lookup(name, RecordType::CAA).await?;
            let found: Vec<_> = records.iter().filter_map(caa_record).take(MAX_VALUES).collect();
            if !found.is_empty() {
                return Ok(found);
            }
        }
        Ok(vec![])
    }

    /// Returns the addresses of the name that domains point at, unless they are configured.
    async fn target_addresses(&self, target: &Target<'_>) -> Result<Vec<IpAddr>, Failure> {
        if !target.addresses.is_empty() {
            return Ok(vec![]);
        }
        let (_, addresses, failure) = self.routing(target.cname).await;
        failure.map_or(Ok(addresses), Err)
    }
}

async fn bounded<T>(lookups: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    timeout(CHECK_TIMEOUT, lookups).await.unwrap_or(Err(Failure::Timeout))
}

fn caa_record(record: &Record) -> Option<CaaRecord> {
    let RData::CAA(caa) = &record.data else { return None };
    let (tag, value) = (cleaned(caa.tag.as_bytes()), cleaned(&caa.value));
    Some(CaaRecord { critical: caa.issuer_critical, tag, value })
}

/// Returns a text that can be stored and shown. Postgres stores no NUL, and a terminal may obey control characters.
fn cleaned(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let is_hidden = |c: char| {
        c.is_control()
            || matches!(c, '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars().map(|c| if is_hidden(c) { '\u{fffd}' } else { c }).take(MAX_CHARS).collect()
}
