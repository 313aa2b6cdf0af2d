//! Analysis of a statement before the engine runs it: whether it is an INSERT with rows, where the rows begin, and the
//! output format of a SELECT.

use std::ops::Range;

use super::lexer::{Kind, Token, Tokens};

/// An INSERT followed by its rows.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct InsertWithRows {
    /// The statement before its FORMAT or VALUES.
    pub(crate) head: Range<usize>,
    /// The rows' format, or `None` if the request defines it.
    pub(crate) format: Option<String>,
    /// The offset of the rows.
    pub(crate) rows_at: usize,
}

/// Parses an INSERT. Returns `None` for other statements, including `INSERT … SELECT`.
pub(crate) fn parse_insert(text: &[u8]) -> Option<InsertWithRows> {
    let is = |token: &Token, word: &str| is_word(text, token, word);
    let mut tokens = Tokens::new(text).peekable();
    let start = tokens.next_if(|token| is(token, "INSERT"))?.at.start;
    tokens.next_if(|token| is(token, "INTO"));
    tokens.next_if(|token| is(token, "TABLE"));
    // The table's name may be any word, including VALUES and FORMAT.
    tokens.next_if(|token| is(token, "FUNCTION"));
    tokens.next()?;
    while tokens.next_if(|token| token.kind == Kind::Mark(b'.')).is_some() {
        tokens.next();
    }
    while let Some(token) = tokens.next() {
        if token.depth > 0 {
            continue;
        }
        if ["SELECT", "WITH", "FROM", "WATCH"].iter().any(|word| is(&token, word)) {
            return None;
        }
        if is(&token, "VALUES") {
            let format = Some("Values".to_owned());
            return Some(InsertWithRows { head: start..token.at.start, format, rows_at: token.at.end });
        }
        if is(&token, "FORMAT") {
            let name = tokens.next().filter(|name| name.kind == Kind::Word)?;
            let format = String::from_utf8(text.get(name.at.clone())?.to_vec()).ok();
            let rows_at = after_format(text, name.at.end);
            return Some(InsertWithRows { head: start..token.at.start, format, rows_at });
        }
    }
    Some(InsertWithRows { head: start..text.len(), format: None, rows_at: text.len() })
}

/// Returns the offset of the data. As in ClickHouse, blanks and at most one line break belong to the statement.
fn after_format(text: &[u8], mut at: usize) -> usize {
    while matches!(text.get(at), Some(b' ' | b'\t' | 0x0c)) {
        at += 1;
    }
    at += usize::from(text.get(at) == Some(&b'\r'));
    at + usize::from(text.get(at) == Some(&b'\n'))
}

/// Returns the format in the FORMAT clause at the statement's end.
pub(crate) fn output_format(text: &[u8]) -> Option<&str> {
    let is = |token: &Token, word: &str| is_word(text, token, word);
    let mut found = None;
    let mut tokens = Tokens::new(text).filter(|token| token.depth == 0).peekable();
    while let Some(token) = tokens.next() {
        if is(&token, "FORMAT")
            && let Some(name) = tokens.next_if(|name| name.kind == Kind::Word)
        {
            let ends = tokens.peek().is_none_or(|next| next.kind == Kind::Mark(b';') || is(next, "SETTINGS"));
            found = ends.then_some(name.at);
        }
    }
    std::str::from_utf8(text.get(found?)?).ok()
}

/// Returns whether the output may be streamed: that of a SELECT without totals and extremes, which libchdb inserts at the
/// wrong place in the pieces.
pub(crate) fn is_streamable(text: &[u8]) -> bool {
    let mut tokens = Tokens::new(text).filter(|token| token.kind == Kind::Word);
    let select =
        tokens.next().is_some_and(|first| ["SELECT", "WITH"].iter().any(|word| is_word(text, &first, word)));
    select && !tokens.any(|token| ["TOTALS", "extremes"].iter().any(|word| is_word(text, &token, word)))
}

fn is_word(text: &[u8], token: &Token, word: &str) -> bool {
    let found = text.get(token.at.clone()).unwrap_or_default();
    token.kind == Kind::Word && found.eq_ignore_ascii_case(word.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> Option<(&str, Option<String>, &str)> {
        let found = parse_insert(text.as_bytes())?;
        Some((&text[found.head], found.format, &text[found.rows_at..]))
    }

    #[test]
    fn splits_an_insert_where_its_rows_begin() {
        let csv = Some("CSV".to_owned());
        let values = Some("Values".to_owned());
        let cases = [
            ("INSERT INTO t FORMAT CSV\n\n1,2", "INSERT INTO t ", csv.clone(), "\n1,2"),
            (
                "insert into `a``b`.values(x, y) values (1,'format')",
                "insert into `a``b`.values(x, y) ",
                values,
                " (1,'format')",
            ),
            (
                "-- note\nINSERT INTO TABLE FUNCTION f('a', 1) (x) SETTINGS k = 'FORMAT' FORMAT CSV",
                "INSERT INTO TABLE FUNCTION f('a', 1) (x) SETTINGS k = 'FORMAT' ",
                csv,
                "",
            ),
            ("INSERT INTO format", "INSERT INTO format", None, ""),
        ];
        for (text, head, format, rows) in cases {
            assert_eq!(parts(text), Some((head, format, rows)), "{text}");
        }
    }

    #[test]
    fn does_not_split_a_statement_without_rows() {
        for text in [
            "INSERT INTO t SELECT 1",
            "SELECT 'INSERT INTO t VALUES'",
            "INSERT INTO t FROM INFILE 'x' FORMAT CSV",
            "",
        ] {
            assert_eq!(parts(text), None, "{text}");
        }
    }

    #[test]
    fn only_a_plain_select_is_streamable() {
        assert!(is_streamable(b"/* x */ (SELECT 1) UNION ALL SELECT 2"));
        for text in [
            "SHOW TABLES",
            "SELECT k, count() FROM t GROUP BY k WITH TOTALS",
            "SELECT 1 SETTINGS extremes = 1",
        ] {
            assert!(!is_streamable(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn the_output_format_is_the_clause_at_the_end() {
        assert_eq!(output_format(b"SELECT 1 FORMAT JSON"), Some("JSON"));
        assert_eq!(output_format(b"SELECT 1 FORMAT CSV SETTINGS a = 1;"), Some("CSV"));
        assert_eq!(output_format(b"SELECT format FROM t"), None);
        assert_eq!(output_format(b"SELECT (SELECT 1 FORMAT x)"), None);
    }
}
