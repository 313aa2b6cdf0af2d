//! A subset of ClickHouse's lexer: words and marks, with strings and comments skipped and brackets counted.

use std::ops::Range;

/// A token outside strings and comments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    /// Its range in the text.
    pub(crate) at: Range<usize>,
    /// The number of open brackets around it.
    pub(crate) depth: usize,
    pub(crate) kind: Kind,
}

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A bare word: keyword, name or number.
    Word,
    /// A quoted string or name.
    Quoted,
    /// Any other single character.
    Mark(u8),
}

/// An iterator over the tokens of a text.
pub(crate) struct Tokens<'t> {
    text: &'t [u8],
    at: usize,
    depth: usize,
}

impl<'t> Tokens<'t> {
    pub(crate) fn new(text: &'t [u8]) -> Self {
        Self { text, at: 0, depth: 0 }
    }

    fn rest(&self) -> &'t [u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Returns the offset after the needle, relative to the rest, or the rest's length.
    fn offset_after(&self, from: usize, needle: &[u8]) -> usize {
        let rest = self.rest();
        let found =
            rest.get(from..).and_then(|tail| tail.windows(needle.len()).position(|part| part == needle));
        found.map_or(rest.len(), |offset| from + offset + needle.len())
    }

    fn quoted(&self, quote: u8) -> usize {
        let rest = self.rest();
        let mut at = 1;
        while let Some(&byte) = rest.get(at) {
            match byte {
                b'\\' => at += 2,
                // A doubled quote is an escaped quote.
                _ if byte == quote && rest.get(at + 1) == Some(&quote) => at += 2,
                _ if byte == quote => return at + 1,
                _ => at += 1,
            }
        }
        rest.len()
    }
}

impl Iterator for Tokens<'_> {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        loop {
            let rest = self.rest();
            let &first = rest.first()?;
            let (kind, length) = match first {
                b' ' | b'\t' | b'\r' | b'\n' | 0x0b | 0x0c | 0 => (None, 1),
                b'-' if rest.starts_with(b"--") => (None, self.offset_after(2, b"\n")),
                b'#' if matches!(rest.get(1), Some(b' ' | b'!')) => (None, self.offset_after(1, b"\n")),
                b'/' if rest.starts_with(b"/*") => (None, self.offset_after(2, b"*/")),
                b'\'' | b'"' | b'`' => (Some(Kind::Quoted), self.quoted(first)),
                _ if is_word(first) => {
                    let length = rest.iter().position(|&byte| !is_word(byte)).unwrap_or(rest.len());
                    (Some(Kind::Word), length)
                }
                mark => (Some(Kind::Mark(mark)), 1),
            };
            let at = self.at..(self.at + length).min(self.text.len());
            self.at = at.end;
            if let Some(Kind::Mark(b')' | b']' | b'}')) = kind {
                self.depth = self.depth.saturating_sub(1);
            }
            let depth = self.depth;
            if let Some(Kind::Mark(b'(' | b'[' | b'{')) = kind {
                self.depth += 1;
            }
            if let Some(kind) = kind {
                return Some(Token { at, depth, kind });
            }
        }
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skips_strings_and_comments_and_counts_brackets() {
        let text = b"a -- x ' y\n /* ( */ 'it''s \\' (' `q` (b) c";
        let words: Vec<_> = Tokens::new(text)
            .filter(|token| token.kind == Kind::Word)
            .map(|token| (&text[token.at], token.depth))
            .collect();
        assert_eq!(words, [(&b"a"[..], 0), (b"b", 1), (b"c", 0)]);
        assert_eq!(Tokens::new(b"'open").count(), 1);
        assert_eq!(Tokens::new(b"/* open").count(), 0);
    }
}
