//! Escapes text for HTML and shows the characters that would otherwise be invisible, or reorder the text around them.

use std::borrow::Cow;
use std::fmt::{self, Write};

/// Whether a character is shown as its code: bidirectional controls, zero-width spaces and tags, with which a text can
/// pretend to be another. Joiners stay, because emoji and Persian need them.
fn is_deceptive(char: char) -> bool {
    matches!(
        char,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200b}' | '\u{2028}' | '\u{2029}' | '\u{feff}'
            | '\u{80}'..='\u{9f}' | '\u{e0000}'..='\u{e007f}'
    )
}

/// Returns the text with control and bidirectional characters made visible. Line breaks and tabs stay.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    let is_plain =
        |char: char| !is_deceptive(char) && (!char.is_control() || matches!(char, '\n' | '\r' | '\t'));
    if text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for char in text.chars() {
        match char {
            _ if is_plain(char) => shown.push(char),
            '\u{7f}' => shown.push('\u{2421}'),
            // The control pictures of Unicode.
            '\0'..='\u{1f}' => shown.push(char::from_u32(0x2400 + u32::from(char)).unwrap_or('\u{fffd}')),
            _ => {
                // Writing to memory does not fail.
                let _written = write!(shown, "⟨U+{:04X}⟩", u32::from(char));
            }
        }
    }
    Cow::Owned(shown)
}

/// Writes text as the content of an element or the value of a quoted attribute.
pub(crate) fn write_escaped(out: &mut impl Write, text: &str) -> fmt::Result {
    let mut rest = text;
    while let Some(at) = rest.find(['&', '<', '>', '"', '\'']) {
        out.write_str(&rest[..at])?;
        out.write_str(match rest.as_bytes()[at] {
            b'&' => "&amp;",
            b'<' => "&lt;",
            b'>' => "&gt;",
            b'"' => "&quot;",
            _ => "&#39;",
        })?;
        rest = &rest[at + 1..];
    }
    out.write_str(rest)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn escaped(text: &str) -> String {
        let mut out = String::new();
        write_escaped(&mut out, text).unwrap();
        out
    }

    #[test]
    fn shows_what_would_reorder_or_hide_text() {
        assert_eq!(visible("report\u{202e}fdp.exe"), "report⟨U+202E⟩fdp.exe");
        assert_eq!(visible("a\u{0}b\u{7f}\n\tc"), "a␀b␡\n\tc");
        assert_eq!(visible("مرحبا 👩‍🚀"), "مرحبا 👩‍🚀");
        assert_eq!(escaped("<a href='x'>&\"</a>"), "&lt;a href=&#39;x&#39;&gt;&amp;&quot;&lt;/a&gt;");
    }

    proptest! {
        #[test]
        fn no_text_leaves_its_element_or_attribute(text in any::<String>()) {
            let shown = escaped(&visible(&text));
            prop_assert!(!shown.contains(['<', '>', '"', '\'']));
            let is_hidden = |char: char| char.is_control() && !matches!(char, '\n' | '\r' | '\t');
            prop_assert!(!shown.chars().any(|char| is_hidden(char) || is_deceptive(char)));
        }
    }
}
