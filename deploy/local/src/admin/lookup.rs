//! What an operator means who types a word: an id, a key's beginning, an e-mail, or a name in
//! whatever form it was copied.

use domain::keys::{self, KeyKind};
use store::account_overview::AccountLookup;
use uuid::Uuid;

/// Reads the word. Of a whole key only its beginning is used; of an address, its host.
pub(crate) fn parse(word: &str, sites_domain: &str) -> AccountLookup {
    let word = word.trim();
    if let Ok(id) = Uuid::try_parse(word) {
        return AccountLookup::Id(id);
    }
    for kind in [KeyKind::Trial, KeyKind::Live] {
        if word.starts_with(kind.prefix()) {
            return AccountLookup::KeyPrefix(keys::shown_prefix(kind, word));
        }
    }
    if word.contains('@') && !word.contains("://") {
        return AccountLookup::Email(word.to_owned());
    }
    let host = word.split_once("://").map_or(word, |(_, rest)| rest);
    let host = host.split(['/', ':', '?']).next().unwrap_or_default().to_ascii_lowercase();
    let name = host.strip_suffix(sites_domain).and_then(|name| name.strip_suffix('.'));
    AccountLookup::Name(name.unwrap_or(&host).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_understood_in_whatever_form_it_was_copied() {
        let id = Uuid::from_u128(7);
        assert_eq!(parse(&format!(" {id}\n"), "localhost"), AccountLookup::Id(id));
        let name = AccountLookup::Name("quiet-otter".to_owned());
        for word in [
            "quiet-otter",
            "Quiet-Otter",
            "quiet-otter.localhost",
            "http://quiet-otter.localhost:8080/about?x=1",
            "quiet-otter.localhost:8080",
        ] {
            assert_eq!(parse(word, "localhost"), name, "{word}");
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
    fn of_a_key_only_what_may_be_shown_is_used() {
        let key = keys::make(KeyKind::Live, &[7; 32]);
        let shown = keys::shown_prefix(KeyKind::Live, &key);
        assert_eq!(parse(&key, "localhost"), AccountLookup::KeyPrefix(shown.clone()));
        assert_eq!(parse(&shown, "localhost"), AccountLookup::KeyPrefix(shown));
    }
}
