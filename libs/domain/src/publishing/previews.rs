//! Previews: built sites at hosts of their own, `<token>--<subdomain>.<sites domain>`, until they are published or expire.
//!
//! The token is the permission to see the preview, as in a signed URL. It stands in the same DNS label as the subdomain, so
//! that the wildcard certificate of the sites domain covers the host.

/// Random bytes of a token.
pub const TOKEN_BYTES: usize = 10;
/// Letters of a token, 5 bits each.
const TOKEN_CHARS: usize = 16;
/// The alphabet of base 32 (RFC 4648), in lower case.
const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
/// Separates token and subdomain. No name of a subdomain contains it.
const SEPARATOR: &str = "--";

/// The label of a preview's host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PreviewLabel<'a> {
    /// The whole label.
    pub label: &'a str,
    /// The token of the preview.
    pub token: &'a str,
    /// The name of its subdomain.
    pub subdomain: &'a str,
}

impl<'a> PreviewLabel<'a> {
    /// Reads a label; `None` if it is none of a preview by its form.
    pub fn parse(label: &'a str) -> Option<Self> {
        let (token, rest) = label.split_at_checked(TOKEN_CHARS)?;
        let subdomain = rest.strip_prefix(SEPARATOR)?;
        let is_token = token.bytes().all(|letter| ALPHABET.contains(&letter));
        (is_token && !subdomain.is_empty()).then_some(Self { label, token, subdomain })
    }
}

/// Returns the token with these random bits.
pub fn token(random: [u8; TOKEN_BYTES]) -> String {
    let bits = random.into_iter().fold(0u128, |bits, byte| bits << 8 | u128::from(byte));
    let letter = |at: usize| char::from(ALPHABET[(bits >> (5 * (TOKEN_CHARS - 1 - at)) & 31) as usize]);
    (0..TOKEN_CHARS).map(letter).collect()
}

/// Returns the label of a preview's host.
pub fn label(token: &str, subdomain: &str) -> String {
    format!("{token}{SEPARATOR}{subdomain}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::subdomains;

    #[test]
    fn a_token_has_sixteen_letters_of_base_32() {
        assert_eq!(token([0; TOKEN_BYTES]), "aaaaaaaaaaaaaaaa");
        assert_eq!(token([255; TOKEN_BYTES]), "7777777777777777");
        // The example of RFC 4648, section 10: `fooba` is `MZXW6YTB`.
        assert_eq!(token(*b"foobafooba"), "mzxw6ytbmzxw6ytb");
    }

    #[test]
    fn other_labels_are_no_previews() {
        for label in [
            "quiet-otter",
            "mzxw6ytbmzxw6ytb",
            "mzxw6ytbmzxw6ytb--",
            "mzxw6ytbmzxw6ytb-quiet-otter",
            "mzxw6ytbmzxw6yt--quiet-otter",
            "mzxw6ytbmzxw6ytb1--quiet-otter",
            "mzxw6ytbmzxw6yt1--quiet-otter",
            "MZXW6YTBMZXW6YTB--quiet-otter",
            "mzxw6ytbmzxw6yt\u{e9}--quiet-otter",
            "--quiet-otter",
            "",
        ] {
            assert_eq!(PreviewLabel::parse(label), None, "{label}");
        }
    }

    proptest! {
        #[test]
        fn a_label_is_read_back_and_no_subdomain_can_have_it(
            random: [u8; TOKEN_BYTES],
            words: [u8; 8],
        ) {
            let (token, subdomain) = (token(random), subdomains::suggest(words));
            let label = label(&token, &subdomain);
            let parsed = PreviewLabel::parse(&label);
            prop_assert_eq!(parsed, Some(PreviewLabel { label: &label, token: &token, subdomain: &subdomain }));
            prop_assert!(label.len() <= 63, "{} is no DNS label", label);
            prop_assert!(!subdomains::check("name", &label).is_empty());
        }

        #[test]
        fn a_name_that_looks_like_a_preview_can_not_be_taken(name in "[a-z2-7]{16}--[a-z0-9-]{1,12}") {
            prop_assert!(PreviewLabel::parse(&name).is_some());
            prop_assert!(!subdomains::check("name", &name).is_empty());
        }
    }
}
