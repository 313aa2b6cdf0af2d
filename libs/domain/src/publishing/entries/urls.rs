//! URLs with untrusted parts: allowed schemes and escaping.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::url_escapes;

/// Schemes that execute nothing in the page. A URL without a scheme belongs to the site itself.
const SCHEMES: [&str; 5] = ["http", "https", "mailto", "tel", "sms"];

/// Replaces a URL that would execute code.
pub(super) const REFUSED: &str = "about:invalid";

/// Characters escaped in a query's value.
const IN_QUERY: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Returns whether a URL has no scheme or an allowed one, written literally. Browsers strip blanks before a URL and
/// line breaks inside it, so an unknown scheme may be one that they execute.
pub(super) fn may_be_followed(address: &str) -> bool {
    let address = address.trim_start_matches(|c: char| c <= ' ');
    let (scheme, rest) = address.split_at(address.find([':', '/', '?', '#', '\\']).unwrap_or(address.len()));
    !rest.starts_with(':') || is_scheme(scheme)
}

/// Returns whether a scheme is allowed.
pub(super) fn is_scheme(word: &str) -> bool {
    SCHEMES.iter().any(|scheme| word.eq_ignore_ascii_case(scheme))
}

/// Escapes an untrusted part before the query. Characters with a meaning in URLs stay.
pub(super) fn in_address(part: &str) -> String {
    utf8_percent_encode(part, url_escapes::FORBIDDEN).to_string()
}

/// Escapes an untrusted part of the query or fragment.
pub(super) fn in_query(part: &str) -> String {
    utf8_percent_encode(part, IN_QUERY).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_schemes_are_allowed_however_they_are_written() {
        for right in [
            "",
            " https://a.example",
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
    fn a_part_of_a_query_can_not_end_it() {
        assert_eq!(in_query("a&b=c#d é"), "a%26b%3Dc%23d%20%C3%A9");
        assert_eq!(in_address("/a b\\\"?x=1&y"), "/a%20b%5C%22?x=1&y");
    }
}
