//! Regular expressions for answers, compiled on first use and cached in their field.

use std::sync::OnceLock;

use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};

/// Maximum length of a pattern, in characters.
pub const MAX_PATTERN: usize = 500;
/// Maximum size of the compiled automaton, in bytes. Matching takes at most this times the length of the answer,
/// whatever the pattern is.
const MAX_BYTES: usize = 64 << 10;
/// Maximum size of the lazy DFA's cache, in bytes.
const MAX_KEPT_BYTES: usize = 256 << 10;

/// A regular expression for a whole text, in the syntax of the `regex` crate, which matches in linear time.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct Pattern {
    text: String,
    /// `None` inside if the pattern is invalid: it matches nothing.
    compiled: OnceLock<Option<Regex>>,
}

impl Pattern {
    /// Validates the pattern. It must also be valid on its own, because `a)|(?:b` would escape from the group around
    /// it.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.text.chars().count() > MAX_PATTERN {
            return Err(format!("pattern may have at most {MAX_PATTERN} characters"));
        }
        let runs = compile(&self.text);
        runs.map(|_| ()).map_err(|error| format!("pattern is not a regular expression we can run: {error}"))
    }

    /// Returns whether the whole text matches.
    pub(crate) fn is_match(&self, text: &str) -> bool {
        let compiled = self.compiled.get_or_init(|| compile(&self.text).ok());
        compiled.as_ref().is_some_and(|compiled| compiled.is_match(text))
    }

    /// Returns whether the pattern is compiled already.
    pub(crate) fn is_compiled(&self) -> bool {
        self.compiled.get().is_some()
    }
}

impl From<String> for Pattern {
    fn from(text: String) -> Self {
        Self { text, compiled: OnceLock::new() }
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> Self {
        pattern.text
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

fn compile(text: &str) -> Result<Regex, regex::Error> {
    regex_syntax::parse(text).map_err(|error| regex::Error::Syntax(error.to_string()))?;
    RegexBuilder::new(&format!("^(?:{text})$")).size_limit(MAX_BYTES).dfa_size_limit(MAX_KEPT_BYTES).build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_the_whole_text_and_is_compiled_once() {
        let pattern = Pattern::from("a|ab".to_owned());
        assert!(!pattern.is_compiled());
        assert!(pattern.is_match("ab") && !pattern.is_match("abc"));
        assert!(pattern.is_compiled() && pattern.clone().is_compiled());
        assert_eq!(pattern, Pattern::from("a|ab".to_owned()));
    }

    #[test]
    fn an_invalid_pattern_is_reported_and_matches_nothing() {
        for text in ["(", "a)|(?:b", "(?=a)", r"(a)\1", "[a-z]{1000}{1000}"] {
            let pattern = Pattern::from(text.to_owned());
            assert!(pattern.check().is_err() && !pattern.is_match("a"), "{text}");
        }
        assert!(Pattern::from("x".repeat(MAX_PATTERN + 1)).check().is_err());
    }
}
