//! Which hosts an account may add, and the name and text that prove ownership of one.

use url::Host;

use crate::base62;
use crate::field_error::FieldError;

/// The label of the TXT record that proves ownership.
const CHALLENGE_LABEL: &str = "_webruntime";
/// The longest host for which the name of the proof is still valid.
const MAX_LEN: usize = 253 - CHALLENGE_LABEL.len() - 1;

/// Returns the host in lower case and punycode. Rejects hosts that are not public, public suffixes, and those of this
/// installation (`own` and their subdomains).
pub fn read(domain: &str, own: &[&str]) -> Result<String, FieldError> {
    let wrong = |code, message: &str| FieldError::new("domain", code, message);
    let malformed = |message: &str| wrong("host", message);
    const RULE: &str = "domain must be a host name like `www.example.com`, without scheme, port or path";
    let domain = domain.trim_end_matches('.');
    if domain.starts_with("*.") {
        return Err(malformed(
            "domain must not be a wildcard: add each host name, such as `www.example.com`",
        ));
    }
    let host = match Host::parse(domain) {
        Ok(Host::Domain(host)) => host,
        Ok(Host::Ipv4(_) | Host::Ipv6(_)) => {
            return Err(malformed("domain must be a host name, not an address"));
        }
        Err(_) => return Err(malformed(RULE)),
    };
    let label = |label: &str| {
        let inside = |c: char| c.is_ascii_alphanumeric() || c == '-';
        (1..=63).contains(&label.len())
            && label.chars().all(inside)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let named = host.split('.').next_back().is_some_and(|top| top.chars().any(|c| c.is_ascii_alphabetic()));
    if !host.contains('.') || !host.split('.').all(label) || !named {
        return Err(malformed(RULE));
    }
    if host.len() > MAX_LEN {
        return Err(malformed("domain must have at most 241 characters in DNS, each label at most 63"));
    }
    let is_ours =
        |ours: &&str| host == **ours || host.strip_suffix(*ours).is_some_and(|rest| rest.ends_with('.'));
    if own.iter().any(is_ours) {
        return Err(wrong("reserved", "domain must be one of your own, not one of this service"));
    }
    if psl::domain_str(&host).is_none() {
        let rule = "domain must be a name registered under a public suffix like `com` or `co.uk`, not the suffix itself";
        return Err(wrong("public_suffix", rule));
    }
    Ok(host)
}

/// Returns the value of the TXT record that proves ownership of a domain.
pub fn challenge(random: &[u8; 32]) -> String {
    base62::encode(random, 32)
}

/// Returns the name of the TXT record that proves ownership of a domain.
pub fn challenge_name(domain: &str) -> String {
    format!("{CHALLENGE_LABEL}.{domain}")
}

/// Returns whether a host is a registered domain itself, at which DNS allows no CNAME record.
pub fn is_apex(host: &str) -> bool {
    psl::domain_str(host) == Some(host)
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
            // A look-alike stays what it is: the punycode shows that it is not `apple.com`.
            ("аpple.com", "xn--pple-43d.com"),
            ("ｗｗｗ.ｅｘａｍｐｌｅ.com", "www.example.com"),
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
            "0x7f.1",
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
            "xn--a.test",
            &format!("{}.test", "a".repeat(64)),
            &format!("{}.test", "ü".repeat(63)),
            &format!("{}test", "a.".repeat(120)),
        ] {
            assert_eq!(read(wrong, &[]).unwrap_err().code, "host", "{wrong}");
        }
        let longest = format!("{}.{}.{}.{}", "a".repeat(63), "b".repeat(63), "c".repeat(63), "d".repeat(49));
        assert_eq!(longest.len(), MAX_LEN);
        assert_eq!(read(&longest, &[]).as_deref(), Ok(longest.as_str()));
        assert_eq!(challenge_name(&longest).len(), 253);
    }

    #[test]
    fn says_why_an_address_or_a_wildcard_is_refused() {
        assert!(read("10.0.0.1", &[]).unwrap_err().message.contains("address"));
        assert!(read("*.example.com", &[]).unwrap_err().message.contains("wildcard"));
    }

    #[test]
    fn rejects_public_suffixes() {
        for suffix in ["co.uk", "github.io", "CO.UK.", "s3.amazonaws.com"] {
            assert_eq!(read(suffix, &[]).unwrap_err().code, "public_suffix", "{suffix}");
        }
        for name in ["example.co.uk", "me.github.io", "example.com", "a.b.example.com"] {
            assert!(read(name, &[]).is_ok(), "{name}");
        }
    }

    #[test]
    fn knows_registered_domains() {
        for (host, expected) in [
            ("example.com", true),
            ("www.example.com", false),
            ("example.co.uk", true),
            ("me.github.io", true),
            ("example.test", true),
        ] {
            assert_eq!(is_apex(host), expected, "{host}");
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
