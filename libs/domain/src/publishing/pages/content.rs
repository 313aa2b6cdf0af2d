//! The content of a page, and its hash for comparing versions.

use serde_json::Value;
use sha2::{Digest, Sha256};

/// A SHA-256 digest.
pub type Hash = [u8; 32];

/// All content of a page that a version retains.
#[derive(Debug, Clone, PartialEq)]
pub struct Content {
    pub title: String,
    pub html: String,
    pub css: Option<String>,
    pub entry_template: Option<String>,
    /// Notes of the owner: an object.
    pub metadata: Value,
}

impl Content {
    /// Returns the hash of the content. It does not depend on the notation of the metadata.
    pub fn hash(&self) -> Hash {
        let mut hash = Sha256::new();
        let metadata = self.metadata_text();
        let texts = [Some(&self.title), Some(&self.html), self.css.as_ref(), self.entry_template.as_ref()];
        for text in texts.into_iter().chain([Some(&metadata)]) {
            // Each part is preceded by its length, so that bytes can't move from one part to the next. `None` has no
            // length.
            match text {
                Some(text) => {
                    hash.update([1]);
                    hash.update((text.len() as u64).to_be_bytes());
                    hash.update(text);
                }
                None => hash.update([0]),
            }
        }
        hash.finalize().into()
    }

    /// Returns the metadata as canonical JSON, so that versions with the same metadata share one text.
    pub fn metadata_text(&self) -> String {
        canonical(&self.metadata)
    }
}

/// Returns the key of a text in the store, where equal texts share one row.
pub fn hash_of(text: &str) -> Hash {
    Sha256::digest(text).into()
}

/// Returns canonical JSON, with sorted keys and one notation for numbers, because Postgres' jsonb returns other
/// notations than it was given.
fn canonical(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(key, _)| *key);
            let member = |(key, value): (&String, &Value)| {
                format!("{}:{}", Value::from(key.as_str()), canonical(value))
            };
            format!("{{{}}}", members.into_iter().map(member).collect::<Vec<_>>().join(","))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(canonical).collect::<Vec<_>>().join(",")),
        Value::Number(number) => match number.as_f64() {
            // Integers that a float represents exactly, whether written 100, 100.0 or 1e2.
            Some(float) if float.fract() == 0.0 && float.abs() < 9e15 => format!("{float:.0}"),
            _ => number.to_string(),
        },
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn content() -> Content {
        let metadata = json!({"a": [1, {"b": "c"}], "d": 1.5});
        Content { title: "T".into(), html: "<p>x".into(), css: None, entry_template: None, metadata }
    }

    #[test]
    fn the_notation_of_metadata_does_not_change_the_hash() {
        let spelled = json!({"d": 1.5, "a": [1.0, {"b": "c"}]});
        assert_eq!(Content { metadata: spelled, ..content() }.hash(), content().hash());
        let other = json!({"a": [1, {"b": "c"}], "d": 1.25});
        assert_ne!(Content { metadata: other, ..content() }.hash(), content().hash());
    }

    #[test]
    fn every_part_changes_the_hash() {
        let all = [
            content(),
            Content { title: "U".into(), ..content() },
            Content { title: "T<".into(), html: "p>x".into(), ..content() },
            Content { css: Some(String::new()), ..content() },
            Content { entry_template: Some(String::new()), ..content() },
            Content { css: Some("a{}".into()), ..content() },
            Content { entry_template: Some("a{}".into()), ..content() },
            Content { metadata: json!({}), ..content() },
        ];
        let hashes: std::collections::BTreeSet<Hash> = all.iter().map(Content::hash).collect();
        assert_eq!(hashes.len(), all.len());
    }

    proptest! {
        #[test]
        fn content_read_back_from_its_json_is_the_same(number: f64, key: String, whole: i64) {
            let metadata = json!({"n": number, key: whole});
            let read: Value = serde_json::from_str(&metadata.to_string()).unwrap();
            let (a, b) = (Content { metadata, ..content() }, Content { metadata: read, ..content() });
            prop_assert_eq!(a.hash(), b.hash());
            let stored: Value = serde_json::from_str(&a.metadata_text()).unwrap();
            prop_assert_eq!(Content { metadata: stored, ..content() }.hash(), a.hash());
        }
    }
}
