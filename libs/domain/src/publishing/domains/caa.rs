//! Whether CAA records let a certificate authority issue (RFC 8659, RFC 8657).

use serde::{Deserialize, Serialize};

/// A CAA record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaaRecord {
    /// An authority that does not know the tag must not issue.
    pub critical: bool,
    /// `issue`, `issuewild`, `iodef` or another.
    pub tag: String,
    pub value: String,
}

/// Challenges by which certificates of custom domains are validated.
const METHODS: [&str; 2] = ["http-01", "tls-alpn-01"];
/// Tags that an authority knows.
const KNOWN_TAGS: [&str; 6] = ["issue", "issuewild", "iodef", "contactemail", "contactphone", "issuemail"];

/// Returns the names with CAA records that may apply to a host, nearest first. The first one with records decides.
pub fn tree(host: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(host), |name| name.split_once('.').map(|(_, parent)| parent))
}

/// Returns whether an authority with any of these names may issue a certificate for a host with these records. Without
/// names, any may.
pub fn allows_issue(records: &[CaaRecord], identities: &[String]) -> bool {
    let is = |record: &&CaaRecord, tag: &str| record.tag.eq_ignore_ascii_case(tag);
    let is_known = |record: &CaaRecord| KNOWN_TAGS.iter().any(|tag| record.tag.eq_ignore_ascii_case(tag));
    if identities.is_empty() {
        return true;
    }
    if records.iter().any(|record| record.critical && !is_known(record)) {
        return false;
    }
    let mut issuers = records.iter().filter(|record| is(record, "issue")).peekable();
    issuers.peek().is_none() || issuers.any(|record| names_one_of(&record.value, identities))
}

/// Returns whether the value of an `issue` record names an identity, and lets it use a challenge that is in use here.
fn names_one_of(value: &str, identities: &[String]) -> bool {
    let mut parts = value.split(';').map(str::trim);
    let issuer = parts.next().unwrap_or_default();
    let is_allowed_method = |parameter: &str| {
        let Some((name, methods)) = parameter.split_once('=') else { return true };
        !name.trim().eq_ignore_ascii_case("validationmethods")
            || methods.split(',').any(|method| METHODS.contains(&method.trim()))
    };
    identities.iter().any(|identity| issuer.eq_ignore_ascii_case(identity)) && parts.all(is_allowed_method)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(critical: bool, tag: &str, value: &str) -> CaaRecord {
        CaaRecord { critical, tag: tag.to_owned(), value: value.to_owned() }
    }

    #[test]
    fn the_tree_goes_up_to_the_top_level_domain() {
        let names: Vec<_> = tree("a.b.example.com").collect();
        assert_eq!(names, ["a.b.example.com", "b.example.com", "example.com", "com"]);
    }

    #[test]
    fn records_decide_who_may_issue() {
        let ours = ["letsencrypt.org".to_owned()];
        for (records, expected) in [
            (vec![], true),
            (vec![record(false, "issue", "letsencrypt.org")], true),
            (vec![record(false, "ISSUE", " LetsEncrypt.org ; accounturi=https://ca.test/1")], true),
            (vec![record(false, "issue", "other.test"), record(false, "issue", "letsencrypt.org")], true),
            (vec![record(false, "issue", "other.test")], false),
            (vec![record(false, "issue", ";")], false),
            (vec![record(false, "issue", "")], false),
            (vec![record(false, "iodef", "mailto:a@b.test")], true),
            // Only names with a wildcard are bound by it.
            (vec![record(false, "issuewild", ";")], true),
            (vec![record(false, "future", "x")], true),
            (vec![record(true, "future", "x"), record(false, "issue", "letsencrypt.org")], false),
            (vec![record(true, "issue", "letsencrypt.org")], true),
            (vec![record(false, "issue", "letsencrypt.org; validationmethods=dns-01")], false),
            (vec![record(false, "issue", "letsencrypt.org; validationmethods=dns-01,http-01")], true),
            (vec![record(false, "issue", "evil-letsencrypt.org")], false),
            (vec![record(false, "issue", "letsencrypt.org.evil.test")], false),
        ] {
            assert_eq!(allows_issue(&records, &ours), expected, "{records:?}");
        }
        assert!(allows_issue(&[record(false, "issue", ";")], &[]), "unchecked without identities");
    }
}
