//! Sets of the characters that are percent-encoded in URLs.

use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC};

/// Characters of a text that is inserted into a path segment or a parameter: all that could end it.
pub const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'!')
    .remove(b'$')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b',')
    .remove(b':')
    .remove(b'@');

/// Characters of a whole path, which has slashes and no query.
pub const PATH: &AsciiSet = &SEGMENT.remove(b'+').remove(b'=').remove(b'/');

/// Characters that no URL contains as they are. Those with a meaning in URLs stay, `%` among them.
pub const FORBIDDEN: &AsciiSet = &CONTROLS
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

#[cfg(test)]
mod tests {
    use percent_encoding::utf8_percent_encode;
    use url::Url;

    use super::*;

    #[test]
    fn each_set_escapes_what_would_change_the_url() {
        let all: String = (' '..='~').collect();
        let escaped = |set| utf8_percent_encode(&all, set).to_string();
        let is_kept = |set, characters: &str| characters.chars().all(|c| escaped(set).contains(c));
        for ends in ["/", "?", "#", "&", "=", "+", ";", "\\", "\""] {
            assert_eq!(utf8_percent_encode(ends, SEGMENT).to_string().len(), 3, "{ends}");
        }
        for ends in ["?", "#", "&", ";", "\\", "\""] {
            assert_eq!(utf8_percent_encode(ends, PATH).to_string().len(), 3, "{ends}");
        }
        assert!(is_kept(PATH, "/+=-._~!$'()*,:@") && is_kept(FORBIDDEN, "/?#&=+;%-._~!$'()*,:@[]"));
        for set in [PATH, SEGMENT] {
            let url = Url::parse(&format!("https://a.test/x{}", escaped(set))).unwrap();
            assert_eq!(
                url.as_str(),
                format!("https://a.test/x{}", escaped(set)),
                "browsers leave it as it is"
            );
        }
    }
}
