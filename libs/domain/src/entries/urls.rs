//! Addresses with strangers' parts in them: which may be followed, and how the parts are written.

use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, utf8_percent_encode};

/// What may be followed from a page without anything being run in it. An address without a scheme is the site's own.
const SCHEMES: [&str; 5] = ["http", "https", "mailto", "tel", "sms"];

/// Instead of an address that would run something.
pub(super) const REFUSED: &str = "about:invalid";

/// What is never written plainly in an address; all that has a meaning there stays.
const IN_ADDRESS: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'<')
    .add(b'>')
    .add(b'\\')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');
/// What is not written plainly in a query's value.
const IN_QUERY: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Whether an address may be followed. Browsers skip blanks before it and line ends within.
pub(super) fn may_be_followed(address: &str) -> bool {
    let address = address.trim_start_matches(|c: char| c <= ' ' || c.is_whitespace());
    let seen = address.chars().filter(|c| !matches!(c, '\t' | '\n' | '\r'));
    let scheme: String = seen.take_while(|c| !matches!(c, ':' | '/' | '?' | '#' | '\\')).collect();
    let mut after = address.chars().filter(|c| !matches!(c, '\t' | '\n' | '\r')).skip(scheme.chars().count());
    after.next() != Some(':') || is_scheme(&scheme)
}

/// Whether this is a scheme that may be followed.
pub(super) fn is_scheme(word: &str) -> bool {
    SCHEMES.iter().any(|scheme| word.eq_ignore_ascii_case(scheme))
}

/// A stranger's part of an address, before its query.
pub(super) fn in_address(part: &str) -> String {
    utf8_percent_encode(part, IN_ADDRESS).to_string()
}

/// A stranger's part of an address' query or fragment.
pub(super) fn in_query(part: &str) -> String {
    utf8_percent_encode(part, IN_QUERY).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_schemes_are_followed_however_they_are_spelled() {
        for right in [
            "",
            "#top",
            "/a:b",
            "a/b",
            "?x=javascript:",
            "page",
            "https://a.example/?x=a:b",
            "HTTP://A",
            "mailto:a@b.co",
            "tel:+1",
            "//a.example",
        ] {
            assert!(may_be_followed(right), "{right:?}");
        }
        for wrong in [
            "javascript:alert(1)",
            "JaVaScRiPt:alert(1)",
            " \u{1}\tjavascript:alert(1)",
            "java\tscript:alert(1)",
            "java\nscript\r:alert(1)",
            "\u{a0}javascript:x",
            "vbscript:x",
            "data:text/html,x",
            "blob:x",
            "file:///x",
            "x:",
            ":",
            "view-source:javascript:x",
            "javascript\u{200b}:x",
        ] {
            assert!(!may_be_followed(wrong), "{wrong:?}");
        }
    }

    #[test]
    fn a_part_of_a_query_ends_nowhere_but_at_its_end() {
        assert_eq!(in_query("a&b=c#d é"), "a%26b%3Dc%23d%20%C3%A9");
        assert_eq!(in_address("/a b\\\"?x=1&y"), "/a%20b%5C%22?x=1&y");
    }
}
