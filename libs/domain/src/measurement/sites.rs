//! Analytics sites: their names, and the public token in their pages.

use crate::field_error::check_length;
use crate::{FieldError, base62};

/// Maximum length of a site's name, in characters.
pub const NAME_CHARS_MAX: usize = 80;

/// Creates a site's public token. It is no secret, because pages contain it, but it is random, so that it can't be
/// enumerated to send false events to other sites.
pub fn token(random: &[u8; 32]) -> String {
    format!("site_{}", base62::encode(random, 22))
}

/// Validates a site's `name` and `domain`.
///
/// The domain is only displayed, so it must merely be a host without scheme, port and path.
pub fn check(name: &str, domain: Option<&str>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    check_length(&mut errors, "name", name.trim(), 1, NAME_CHARS_MAX);
    if domain.is_some_and(|domain| !looks_like_a_host(domain)) {
        let rule = "domain must be a host name like `www.example.com`, without scheme, port or path";
        errors.push(FieldError::new("domain", "host", rule));
    }
    errors
}

/// Returns a domain as it is stored: host names don't distinguish case.
pub fn normal_domain(domain: &str) -> String {
    domain.to_lowercase()
}

fn looks_like_a_host(domain: &str) -> bool {
    let label = |label: &str| {
        let inside = |c: char| c.is_alphanumeric() || c == '-';
        (1..=63).contains(&label.len())
            && label.chars().all(inside)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    domain.len() <= 253 && domain.split('.').all(label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_letters_and_digits_after_its_prefix() {
        let token = token(&[200; 32]);
        assert_eq!(token.len(), "site_".len() + 22);
        assert!(token["site_".len()..].chars().all(|c| c.is_ascii_alphanumeric()));
    }

    #[test]
    fn a_domain_is_stored_in_lower_case() {
        assert_eq!(normal_domain("WWW.BÜCHER.Example"), "www.bücher.example");
    }

    #[test]
    fn names_are_bounded_and_domains_are_hosts() {
        assert_eq!(check("Shop", None), vec![]);
        for host in ["example.com", "localhost", "www.bücher.example", "a-b.c"] {
            assert_eq!(check("Shop", Some(host)), vec![], "{host}");
        }
        for wrong in ["https://example.com", "example.com/x", "a..b", "", "-a.com", "a b", "example.com:80"] {
            assert_eq!(check("Shop", Some(wrong)).len(), 1, "{wrong}");
        }
        assert_eq!(check("  ", None)[0].code, "required");
        assert_eq!(check(&"x".repeat(81), None)[0].code, "too_long");
    }
}
