//! What the front must know of a statement before the engine sees it: whether it is an INSERT whose rows
//! follow, where those begin, and in which format a SELECT answers.

use std::ops::Range;

use super::lexer::{Kind, Token, Tokens};

/// An INSERT whose rows stand behind it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RowsFollow {
    /// The statement up to its FORMAT or VALUES.
    pub(crate) head: Range<usize>,
    /// The rows' format; `None` where the statement leaves it to the request.
    pub(crate) format: Option<String>,
    /// Where the rows begin.
    pub(crate) rows_at: usize,
}

/// Takes an INSERT apart. `None` for everything else, `INSERT … SELECT` included.
pub(crate) fn rows_follow(text: &[u8]) -> Option<RowsFollow> {
    let is = |token: &Token, word: &str| is_word(text, token, word);
    let mut tokens = Tokens::new(text).peekable();
    let start = tokens.next_if(|token| is(token, "INSERT"))?.at.start;
    tokens.next_if(|token| is(token, "INTO"));
    tokens.next_if(|token| is(token, "TABLE"));
    // The table's own name may be any word, VALUES and FORMAT included.
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
            return Some(RowsFollow { head: start..token.at.start, format, rows_at: token.at.end });
        }
        if is(&token, "FORMAT") {
            let name = tokens.next().filter(|name| name.kind == Kind::Word)?;
            let format = String::from_utf8(text.get(name.at.clone())?.to_vec()).ok();
            let rows_at = after_format(text, name.at.end);
            return Some(RowsFollow { head: start..token.at.start, format, rows_at });
        }
    }
    Some(RowsFollow { head: start..text.len(), format: None, rows_at: text.len() })
}

/// As ClickHouse: blanks, then at most one line's end, belong to the statement; the rest is data.
fn after_format(text: &[u8], mut at: usize) -> usize {
    while matches!(text.get(at), Some(b' ' | b'\t' | 0x0c)) {
        at += 1;
    }
    at += usize::from(text.get(at) == Some(&b'\r'));
    at + usize::from(text.get(at) == Some(&b'\n'))
}

/// The format a statement names for its own output: a FORMAT clause at its end.
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

/// Whether a statement may be one whose output can be fetched piece by piece: a SELECT, without totals and
/// extremes, which libchdb puts into pieces in the wrong place.
pub(crate) fn comes_in_pieces(text: &[u8]) -> bool {
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
        let found = rows_follow(text.as_bytes())?;
        Some((&text[found.head], found.format, &text[found.rows_at..]))
    }

    #[test]
    fn an_insert_is_cut_where_its_rows_begin() {
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
    fn a_statement_without_rows_is_left_whole() {
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
    fn only_a_plain_select_comes_in_pieces() {
        assert!(comes_in_pieces(b"/* x */ (SELECT 1) UNION ALL SELECT 2"));
        for text in [
            "SHOW TABLES",
            "SELECT k, count() FROM t GROUP BY k WITH TOTALS",
            "SELECT 1 SETTINGS extremes = 1",
        ] {
            assert!(!comes_in_pieces(text.as_bytes()), "{text}");
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
