//! Custom domains: which hosts an account may add, and which DNS records prove ownership.

use schemars::JsonSchema;
use serde::Serialize;
use url::Host;

use crate::base62;
use crate::field_error::FieldError;

/// A DNS record that the owner must publish.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "DnsRecord")]
pub struct Record {
    /// `CNAME` or `TXT`.
    pub r#type: &'static str,
    /// Full name of the record.
    pub name: String,
    /// Value of the record.
    pub value: String,
}

/// Returns the host in lower case and punycode. Rejects hosts that are not public, and those of this installation
/// (`own` and their subdomains).
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

/// Returns the value of the TXT record that proves ownership of a domain.
pub fn challenge(random: &[u8; 32]) -> String {
    base62::encode(random, 32)
}

/// Returns the DNS records for a `domain` that should serve the site at `target`.
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
    fn a_domain_is_normalized_to_lower_case_and_punycode() {
        for (given, host) in [
            ("Example.COM", "example.com"),
            ("www.example.com.", "www.example.com"),
            ("bücher.example", "xn--bcher-kva.example"),
        ] {
            assert_eq!(read(given, &[]).as_deref(), Ok(host));
        }
    }

    #[test]
    fn rejects_hosts_that_are_not_public() {
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
    fn rejects_hosts_of_this_installation() {
        for ours in ["app.test", "x.app.test", "SITES.test", "shop.sites.test"] {
            assert_eq!(read(ours, &["app.test", "sites.test"]).unwrap_err().code, "reserved", "{ours}");
        }
        assert!(read("notapp.test", &["app.test"]).is_ok());
    }
}
