//! Expressions that answers must match: compiled when first asked, and kept with their field.

use std::sync::OnceLock;

use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};

/// Most characters of a pattern.
pub const MAX_PATTERN: usize = 500;
/// Most bytes of the automaton made of one: an answer takes at most its length times this, however it is written.
const MAX_BYTES: usize = 64 << 10;
/// Most bytes it keeps to be quicker.
const MAX_KEPT_BYTES: usize = 256 << 10;

/// A regular expression for a whole text, as its form's owner wrote it: in the `regex` crate's syntax, run in linear time.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct Pattern {
    text: String,
    /// None inside for one that can't be run: nothing matches it.
    compiled: OnceLock<Option<Regex>>,
}

impl Pattern {
    /// Whether it can be run: by itself too, as `a)|(?:b` would escape from what is put around it.
    ///
    /// # Errors
    /// Why not.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.text.chars().count() > MAX_PATTERN {
            return Err(format!("pattern may have at most {MAX_PATTERN} characters"));
        }
        let runs = compile(&self.text);
        runs.map(|_| ()).map_err(|error| format!("pattern is not a regular expression we can run: {error}"))
    }

    /// Whether the whole text matches.
    pub(crate) fn is_match(&self, text: &str) -> bool {
        let compiled = self.compiled.get_or_init(|| compile(&self.text).ok());
        compiled.as_ref().is_some_and(|compiled| compiled.is_match(text))
    }

    /// Whether it was compiled already.
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
    fn it_is_for_the_whole_text_and_compiled_once() {
        let pattern = Pattern::from("a|ab".to_owned());
        assert!(!pattern.is_compiled());
        assert!(pattern.is_match("ab") && !pattern.is_match("abc"));
        assert!(pattern.is_compiled() && pattern.clone().is_compiled());
        assert_eq!(pattern, Pattern::from("a|ab".to_owned()));
    }

    #[test]
    fn what_cannot_be_run_is_named_and_matched_by_nothing() {
        for text in ["(", "a)|(?:b", "(?=a)", r"(a)\1", "[a-z]{1000}{1000}"] {
            let pattern = Pattern::from(text.to_owned());
            assert!(pattern.check().is_err() && !pattern.is_match("a"), "{text}");
        }
        assert!(Pattern::from("x".repeat(MAX_PATTERN + 1)).check().is_err());
    }
}
