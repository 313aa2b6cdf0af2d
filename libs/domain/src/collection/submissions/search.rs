//! The terms of a search: words, of which the beginning is enough, `"a phrase"`, `one or other` and `-without`.

/// A term of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchTerm {
    /// The words.
    pub text: String,
    /// Whether the words must occur as they are, one after the other. Otherwise the text is one word, or its beginning.
    pub is_exact: bool,
    /// Whether the term must not occur.
    pub is_excluded: bool,
}

/// Parses a search into alternatives. In at least one of them, all terms must match.
pub fn search_terms(text: &str) -> Vec<Vec<SearchTerm>> {
    let mut alternatives = vec![Vec::new()];
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let unsigned = rest.strip_prefix('-');
        let is_excluded = unsigned.is_some();
        let start = unsigned.unwrap_or(rest);
        // A quotation mark without an end means an inch, not a phrase.
        if let Some((phrase, after)) = start.strip_prefix('"').and_then(|quoted| quoted.split_once('"')) {
            push(&mut alternatives, SearchTerm { text: phrase.to_owned(), is_exact: true, is_excluded });
            rest = after.trim_start();
            continue;
        }
        let end = word_end(start);
        let (word, after) = start.split_at(end);
        rest = after.trim_start();
        if word.eq_ignore_ascii_case("or") && !is_excluded {
            alternatives.push(Vec::new());
        } else {
            // A word that must not occur is a whole one: `-in` does not exclude `invoice`.
            push(&mut alternatives, SearchTerm { text: word.to_owned(), is_exact: is_excluded, is_excluded });
        }
    }
    // An `or` without another term has no effect.
    alternatives.retain(|terms| !terms.is_empty());
    alternatives
}

fn push(alternatives: &mut [Vec<SearchTerm>], term: SearchTerm) {
    if let Some(last) = alternatives.last_mut().filter(|_| !term.text.trim().is_empty()) {
        last.push(term);
    }
}

/// Returns the end of the word at the start of `text`: a blank, or the quotation mark of a phrase. At least one character
/// belongs to the word.
fn word_end(text: &str) -> usize {
    let is_phrase = |at: usize| text[at..].starts_with('"') && text[at + 1..].contains('"');
    let mut ends = text.char_indices().skip(1).filter(|(at, c)| c.is_whitespace() || is_phrase(*at));
    ends.next().map_or(text.len(), |(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let term = |term: SearchTerm| {
            let (sign, end) = (if term.is_excluded { "!" } else { "" }, if term.is_exact { "" } else { "*" });
            format!("{sign}{}{end}", term.text)
        };
        let all = |terms: Vec<SearchTerm>| terms.into_iter().map(term).collect::<Vec<_>>().join(" & ");
        search_terms(text).into_iter().map(all).collect::<Vec<_>>().join(" | ")
    }

    #[test]
    fn a_search_has_words_phrases_alternatives_and_exclusions() {
        for (text, terms) in [
            ("", ""),
            ("  red  apples ", "red* & apples*"),
            ("\"red apples\" -green", "red apples & !green"),
            ("-\"red apples\"", "!red apples"),
            ("red or blue pears OR figs", "red* | blue* & pears* | figs*"),
            ("or red or", "red*"),
            ("orange", "orange*"),
            ("27\" monitor", "27\"* & monitor*"),
            ("a\"b c\"d", "a* & b c & d*"),
            ("\"\" - \" \" -", ""),
            ("\"", "\"*"),
            ("é\u{2003}日本", "é* & 日本*"),
            ("ana@exam", "ana@exam*"),
        ] {
            assert_eq!(shown(text), terms, "{text}");
        }
    }
}
