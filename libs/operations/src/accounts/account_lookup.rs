//! Parsing of an operator's account lookup: an id, a key's prefix, an e-mail address, or a name in any copied form.

use domain::keys::{self, KeyKind};
use store::account_overview::AccountLookup;
use uuid::Uuid;

/// Parses the text. Uses only the prefix of a whole key, and only the host of a URL.
pub(super) fn parse(text: &str, sites_domain: &str) -> AccountLookup {
    let text = text.trim();
    if let Ok(id) = Uuid::try_parse(text) {
        return AccountLookup::Id(id);
    }
    for kind in [KeyKind::Trial, KeyKind::Live] {
        if text.starts_with(kind.prefix()) {
            return AccountLookup::KeyPrefix(keys::shown_prefix(kind, text));
        }
    }
    if text.contains('@') && !text.contains("://") {
        return AccountLookup::Email(text.to_owned());
    }
    let host = text.split_once("://").map_or(text, |(_, rest)| rest);
    let host = host.split(['/', ':', '?']).next().unwrap_or_default().to_ascii_lowercase();
    let name = host.strip_suffix(sites_domain).and_then(|name| name.strip_suffix('.'));
    AccountLookup::Name(name.unwrap_or(&host).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepts_a_name_in_any_copied_form() {
        let id = Uuid::from_u128(7);
        assert_eq!(parse(&format!(" {id}\n"), "localhost"), AccountLookup::Id(id));
        let name = AccountLookup::Name("quiet-otter".to_owned());
        for text in [
            "quiet-otter",
            "Quiet-Otter",
            "quiet-otter.localhost",
            "http://quiet-otter.localhost:8080/about?x=1",
            "quiet-otter.localhost:8080",
        ] {
            assert_eq!(parse(text, "localhost"), name, "{text}");
        }
        assert_eq!(
            parse("Ana@example.com ", "localhost"),
            AccountLookup::Email("Ana@example.com".to_owned())
        );
        assert_eq!(
            parse("https://shop.example/", "localhost"),
            AccountLookup::Name("shop.example".to_owned())
        );
    }

    #[test]
    fn uses_only_the_prefix_of_a_key() {
        let key = keys::make(KeyKind::Live, &[7; 32]);
        let shown = keys::shown_prefix(KeyKind::Live, &key);
        assert_eq!(parse(&key, "localhost"), AccountLookup::KeyPrefix(shown.clone()));
        assert_eq!(parse(&shown, "localhost"), AccountLookup::KeyPrefix(shown));
    }
}
