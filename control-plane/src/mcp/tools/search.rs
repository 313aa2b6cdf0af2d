//! Finds operations by words, and describes one of them.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use domain::scopes::ScopeSet;
use serde_json::{Value, json};

use super::class::{Class, required_scopes};
use super::defaults::ITSELF;
use crate::catalog::{Catalog, Operation};

/// Results unless the caller asks for another number, and the most it can ask for.
const LIMIT: usize = 8;
const MAX_LIMIT: usize = 50;
/// Characters and words of a query that count, and characters of a word.
const MAX_CHARS: usize = 512;
const MAX_WORDS: usize = 16;
const MAX_WORD_CHARS: usize = 64;

/// The words of all operations. Made once, because a search runs where requests are answered.
#[derive(Debug)]
pub(super) struct Index {
    /// In the order of the document.
    entries: Vec<Entry>,
    /// Each word once, with the operations that have it and how much it counts for each.
    words: Vec<(String, Vec<(usize, u32)>)>,
}

/// An operation.
#[derive(Debug)]
struct Entry {
    id: String,
    /// `account` and `read` of `account.read`.
    id_words: Vec<String>,
    /// Whether no other id begins with the same word.
    is_only_one: bool,
    /// `None` for a public operation.
    scopes: Option<ScopeSet>,
    is_callable: bool,
    /// What a search returns for it.
    found: Value,
}

impl Index {
    /// Reads the operations of a catalog.
    pub(super) fn new(catalog: &Catalog) -> Self {
        let mut words: BTreeMap<String, BTreeMap<usize, u32>> = BTreeMap::new();
        let mut entries = Vec::new();
        for (at, operation) in catalog.operations().iter().enumerate() {
            let mut add = |text: &str, weight: u32| {
                for word in words_of(text) {
                    let counted = words.entry(word).or_default().entry(at).or_default();
                    *counted = weight.max(*counted);
                }
            };
            add(&operation.id, 6);
            add(&operation.summary, 4);
            add(operation.category, 2);
            add(&operation.path, 2);
            let members = operation.input_schema["properties"].as_object().into_iter().flatten();
            members.for_each(|(name, _)| add(name, 1));
            entries.push(Entry {
                id: operation.id.clone(),
                id_words: words_of(&operation.id).collect(),
                is_only_one: catalog
                    .operations()
                    .iter()
                    .filter(|other| noun(other) == noun(operation))
                    .count()
                    == 1,
                scopes: required_scopes(operation),
                is_callable: operation.served_here && operation.category != ITSELF,
                found: json!({
                    "operation": operation.id,
                    "summary": operation.summary,
                    "callWith": Class::of(operation).tool(),
                    "required": operation.input_schema.get("required").unwrap_or(&json!([])),
                }),
            });
        }
        let words = words.into_iter().map(|(word, places)| (word, places.into_iter().collect())).collect();
        Self { entries, words }
    }

    /// Returns the operations that match the words best, of those that a key with these scopes can call.
    pub(super) fn search(&self, scopes: ScopeSet, query: &str, limit: Option<usize>) -> Value {
        let words = query_words(query);
        let scores = self.scores(&words);
        let is_allowed = |entry: &Entry| {
            entry.is_callable && entry.scopes.is_none_or(|needed| needed.is_subset_of(scopes))
        };
        let mut found: Vec<_> = self
            .entries
            .iter()
            .zip(scores)
            .filter(|(entry, score)| (*score > 0 || words.is_empty()) && is_allowed(entry))
            .collect();
        // A stable sort: operations of the same score stay in the order of the document.
        found.sort_by_key(|(_, score)| Reverse(*score));
        let total = found.len();
        found.truncate(limit.unwrap_or(LIMIT).clamp(1, MAX_LIMIT));
        let operations: Vec<&Value> = found.into_iter().map(|(entry, _)| &entry.found).collect();
        json!({ "operations": operations, "total": total })
    }

    /// Returns how well each operation matches: a word counts most in the id, then in the summary.
    fn scores(&self, words: &[String]) -> Vec<u32> {
        let mut scores = vec![0; self.entries.len()];
        let mut best = scores.clone();
        for word in words {
            best.fill(0);
            for (_, places) in self.words.iter().filter(|(known, _)| is_like(known, word)) {
                for (at, weight) in places {
                    if let Some(best) = best.get_mut(*at) {
                        *best = weight.max(best).to_owned();
                    }
                }
            }
            scores.iter_mut().zip(&best).for_each(|(score, best)| *score += best);
        }
        scores
    }

    /// Returns the id that is most like an unknown one. A word such as `test` alone says too little: both words must be
    /// alike, unless one names the only operation on its resource.
    pub(super) fn nearest(&self, name: &str) -> Option<&str> {
        let words = query_words(name);
        let common = |entry: &Entry| {
            let is_common = |own: &&String| words.iter().any(|word| is_like(own, word));
            entry.id_words.iter().filter(is_common).count()
        };
        let mut scored: Vec<_> = self
            .entries
            .iter()
            .filter(|entry| entry.is_callable)
            .map(|entry| (common(entry), entry))
            .filter(|(count, entry)| match count {
                0 => false,
                1 => entry.is_only_one && entry.id_words.first().is_some_and(|noun| words.contains(noun)),
                _ => true,
            })
            .collect();
        scored.sort_by_key(|(count, entry)| (Reverse(*count), entry.id_words.len()));
        scored.first().map(|(_, entry)| entry.id.as_str())
    }
}

/// Returns everything about an operation that a caller needs.
pub(in crate::mcp) fn describe(operation: &Operation) -> Value {
    json!({
        "operation": operation.id,
        "summary": operation.summary,
        "description": operation.description,
        "callWith": Class::of(operation).tool(),
        "method": operation.method.as_str(),
        "path": operation.path,
        "scopes": operation.scopes,
        "inputSchema": operation.input_schema,
        "outputSchema": operation.response,
    })
}

/// Returns `pages` of `pages.read`.
fn noun(operation: &Operation) -> &str {
    operation.id.split('.').next().unwrap_or_default()
}

/// Returns whether one of the words begins with the other. Two letters begin too many words.
fn is_like(known: &str, word: &str) -> bool {
    known.starts_with(word) || known.len() > 2 && word.starts_with(known)
}

/// Returns the first words of a query, each once.
fn query_words(query: &str) -> Vec<String> {
    let end = query.char_indices().nth(MAX_CHARS).map_or(query.len(), |(at, _)| at);
    let mut words: Vec<String> = Vec::new();
    for word in words_of(query.get(..end).unwrap_or_default()) {
        if words.len() < MAX_WORDS && !words.contains(&word) {
            words.push(word);
        }
    }
    words
}

/// Returns the words of a text in lower case, without the `s` of the plural.
fn words_of(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|char: char| !char.is_alphanumeric()).filter(|word| word.len() > 1);
    let words = words.map(|word| word.chars().take(MAX_WORD_CHARS).collect::<String>().to_lowercase());
    words.map(|word| word.trim_end_matches('s').to_owned()).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index() -> Index {
        Index::new(&Catalog::new(&crate::api::document()))
    }

    #[test]
    fn words_find_operations() {
        let index = index();
        let first =
            |query: &str| index.search(ScopeSet::FULL, query, None)["operations"][0]["operation"].clone();
        for (query, id) in [
            ("create a folder", "folders.create"),
            ("rotate webhook secret", "webhooks.rotate_secret"),
            ("launch site", "launch.create"),
            ("delete a batch of pages", "pages.delete_batch"),
            ("rename subdomain", "subdomains.rename"),
        ] {
            assert_eq!(first(query), id, "{query}");
        }
        let all = index.search(ScopeSet::FULL, "", Some(1_000));
        assert_eq!(all["operations"].as_array().map(Vec::len), Some(MAX_LIMIT));
        assert_eq!(index.search(ScopeSet::default(), "webhooks", None)["total"], 0);
    }

    #[test]
    fn a_query_is_bounded() {
        let long = format!("{} {}", "ab".repeat(200), (0..200).map(|n| format!("w{n} ")).collect::<String>());
        let words = query_words(&long.repeat(100));
        assert_eq!((words.len(), words[0].chars().count()), (MAX_WORDS, MAX_WORD_CHARS));
        assert_eq!(query_words(&"é ".repeat(1_000_000)), ["é"]);
        assert_eq!(query_words(&" ".repeat(1_000_000)), Vec::<String>::new());
    }

    #[test]
    fn a_guess_needs_more_than_one_common_word() {
        let index = index();
        for (name, id) in [
            ("pages.creat", Some("pages.create")),
            ("pages_creat", Some("pages.create")),
            ("create_webhook", Some("webhooks.create")),
            ("rotate_webhook_secret", Some("webhooks.rotate_secret")),
            ("launch", Some("launch.create")),
            ("launch_site", Some("launch.create")),
            ("test_logging_tool", None),
            ("test_simple_text", None),
            ("read", None),
            ("mcp.call", None),
            ("", None),
        ] {
            assert_eq!(index.nearest(name), id, "{name}");
        }
        assert_eq!(index.nearest(&"x".repeat(100_000)), None);
    }
}
