//! Texts within a platform's limits, whole characters and whole escapes only.

/// How a character is written where it would mean something; `None` as it is.
pub(super) type Escape = fn(char) -> Option<&'static str>;

/// At most `max` UTF-16 units of `text`; an ellipsis says that there was more.
pub(super) fn truncate(text: &str, max: usize) -> String {
    truncate_escaped(text, max, |_| None)
}

/// The same of what `text` becomes when it is escaped.
pub(super) fn truncate_escaped(text: &str, max: usize, escape: Escape) -> String {
    let mut written = String::new();
    let (mut units, mut end_with_ellipsis) = (0, 0);
    for letter in text.chars() {
        let before = written.len();
        match escape(letter) {
            Some(escaped) => written.push_str(escaped),
            None => written.push(letter),
        }
        units += length(&written[before..]);
        if units > max {
            written.truncate(end_with_ellipsis);
            written.push('…');
            return written;
        }
        if units < max {
            end_with_ellipsis = written.len();
        }
    }
    written
}

/// UTF-16 units.
pub(super) fn length(text: &str) -> usize {
    text.encode_utf16().count()
}

/// `&`, `<` and `>` as entities: all that Slack, Telegram and Google Chat need.
pub(super) fn entity(letter: char) -> Option<&'static str> {
    match letter {
        '&' => Some("&amp;"),
        '<' => Some("&lt;"),
        '>' => Some("&gt;"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_left_alone_and_what_does_not_says_so() {
        assert_eq!(truncate("abcd", 4), "abcd");
        assert_eq!(truncate("abcde", 4), "abc…");
        assert_eq!(truncate("", 4), "");
        assert_eq!(truncate("a", 0), "…");
    }

    #[test]
    fn neither_a_character_nor_an_escape_is_cut_in_two() {
        assert_eq!(truncate("\u{1f980}\u{1f980}\u{1f980}", 5), "\u{1f980}\u{1f980}…");
        assert_eq!(truncate_escaped("a<b", 5, entity), "a…");
        assert_eq!(truncate_escaped("a<b", 6, entity), "a&lt;b");
        assert_eq!(truncate_escaped("<<<", 9, entity), "&lt;&lt;…");
    }
}
