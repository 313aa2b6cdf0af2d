//! Truncation to a platform's limits, at whole characters and whole escape sequences.

/// Returns the escape sequence of a character, or `None` if it needs none.
pub(super) type Escape = fn(char) -> Option<&'static str>;

/// Truncates `text` to `max` UTF-16 units, with an ellipsis.
pub(super) fn truncate(text: &str, max: usize) -> String {
    truncate_escaped(text, max, |_| None)
}

/// Escapes `text` and truncates the result.
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

/// Returns the length in UTF-16 units.
pub(super) fn length(text: &str) -> usize {
    text.encode_utf16().count()
}

/// Escapes `&`, `<` and `>` as entities, as Slack, Telegram and Google Chat need it.
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
    fn a_short_text_is_unchanged_and_a_long_one_gets_an_ellipsis() {
        assert_eq!(truncate("abcd", 4), "abcd");
        assert_eq!(truncate("abcde", 4), "abc…");
        assert_eq!(truncate("", 4), "");
        assert_eq!(truncate("a", 0), "…");
    }

    #[test]
    fn neither_a_character_nor_an_escape_sequence_is_split() {
        assert_eq!(truncate("\u{1f980}\u{1f980}\u{1f980}", 5), "\u{1f980}\u{1f980}…");
        assert_eq!(truncate_escaped("a<b", 5, entity), "a…");
        assert_eq!(truncate_escaped("a<b", 6, entity), "a&lt;b");
        assert_eq!(truncate_escaped("<<<", 9, entity), "&lt;&lt;…");
    }
}
