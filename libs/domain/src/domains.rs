//! Custom domains: which hosts an account may bring, and what it must publish to show that one is its own.

use schemars::JsonSchema;
use serde::Serialize;
use url::Host;

use crate::base62;
use crate::field_error::FieldError;

/// A DNS record to publish.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "DnsRecord")]
pub struct Record {
    /// `CNAME` or `TXT`.
    pub r#type: &'static str,
    /// The record's full name.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// The host in lower case and punycode.
///
/// # Errors
/// It is no public host name, or one of ours (`own` and what lies under them).
pub fn read(domain: &str, own: &[&str]) -> Result<String, FieldError> {
    let wrong = |code, message: &str| FieldError::new("domain", code, message);
    let malformed = || {
        let rule = "domain must be a host name like `www.example.com`, without scheme, port or path";
        wrong("host", rule)
    };
    let domain = domain.trim_end_matches('.');
    let Ok(Host::Domain(host)) = Host::parse(domain) else { return Err(malformed()) };
    let label = |label: &str| {
        let inside = |c: char| c.is_ascii_alphanumeric() || c == '-';
        (1..=63).contains(&label.len())
            && label.chars().all(inside)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let named = host.split('.').next_back().is_some_and(|top| top.chars().any(|c| c.is_ascii_alphabetic()));
    if host.len() > 253 || !host.contains('.') || !host.split('.').all(label) || !named {
        return Err(malformed());
    }
    let is_ours =
        |ours: &&str| host == **ours || host.strip_suffix(*ours).is_some_and(|rest| rest.ends_with('.'));
    if own.iter().any(is_ours) {
        return Err(wrong("reserved", "domain must be one of your own, not one of this service"));
    }
    Ok(host)
}

/// What an owner publishes to show that a domain is theirs.
pub fn challenge(random: &[u8; 32]) -> String {
    base62::encode(random, 32)
}

/// The records to publish for `domain`, which is to show the site at `target`.
pub fn records(domain: &str, target: &str, challenge: &str) -> Vec<Record> {
    vec![
        Record { r#type: "CNAME", name: domain.to_owned(), value: target.to_owned() },
        Record { r#type: "TXT", name: format!("_webruntime.{domain}"), value: challenge.to_owned() },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_domain_is_written_in_lower_case_and_punycode() {
        for (given, host) in [
            ("Example.COM", "example.com"),
            ("www.example.com.", "www.example.com"),
            ("bücher.example", "xn--bcher-kva.example"),
        ] {
            assert_eq!(read(given, &[]).as_deref(), Ok(host));
        }
    }

    #[test]
    fn what_is_no_public_host_is_refused() {
        for wrong in [
            "",
            "localhost",
            "10.0.0.1",
            "[::1]",
            "https://a.test",
            "a.test/x",
            "a.test:80",
            "a..test",
            "-a.test",
            "a b.test",
            "a_b.test",
            "*.a.test",
            "1.2.3",
            "a\0.test",
            &format!("{}.test", "a".repeat(64)),
        ] {
            assert_eq!(read(wrong, &[]).unwrap_err().code, "host", "{wrong}");
        }
    }

    #[test]
    fn our_own_hosts_and_those_under_them_are_refused() {
        for ours in ["app.test", "x.app.test", "SITES.test", "shop.sites.test"] {
            assert_eq!(read(ours, &["app.test", "sites.test"]).unwrap_err().code, "reserved", "{ours}");
        }
        assert!(read("notapp.test", &["app.test"]).is_ok());
    }
}
