//! What an address says about a form before it is shown: its language, whether it is framed, and answers.

use std::collections::BTreeMap;

use domain::answers::{self, Answers};
use domain::fields::{Field, FieldType};
use http::HeaderMap;
use serde_json::Value;

use super::languages::Language;
use super::page::Presentation;

/// Longer texts are no prefill, and would only be carried to and fro.
const TEXT_CHARS_MAX: usize = 2_000;

impl Presentation {
    /// As the query and the headers of a request ask for it.
    pub(crate) fn asked(query: &str, headers: &HeaderMap) -> Self {
        Self::asked_or(query, || Language::liked(headers))
    }

    /// As a query asks for it, or else in the language that is `liked`.
    pub(crate) fn asked_or(query: &str, liked: impl FnOnce() -> Language) -> Self {
        let value = |name: &str| {
            form_urlencoded::parse(query.as_bytes()).find(|(key, _)| key == name).map(|(_, value)| value)
        };
        Self::new(value("lang").as_deref(), value("embed").as_deref(), liked)
    }

    /// As a posted form says, or else its headers.
    pub(crate) fn of(language: Option<&str>, embedded: Option<&str>, headers: &HeaderMap) -> Self {
        Self::new(language, embedded, || Language::liked(headers))
    }

    fn new(language: Option<&str>, embedded: Option<&str>, liked: impl FnOnce() -> Language) -> Self {
        let asked_for = language.and_then(Language::tagged);
        Self {
            language: asked_for.unwrap_or_else(liked),
            is_asked_for: asked_for.is_some(),
            is_embedded: embedded == Some("1"),
        }
    }

    /// What an address must say for it to be shown so again.
    pub(crate) fn query(self) -> String {
        let language = self.is_asked_for.then(|| format!("lang={}", self.language.code()));
        let embedded = self.is_embedded.then(|| "embed=1".to_owned());
        let parts: Vec<_> = language.into_iter().chain(embedded).collect();
        if parts.is_empty() { String::new() } else { format!("?{}", parts.join("&")) }
    }
}

/// Whether an address says nothing but how the form is shown.
pub(crate) fn is_bare(query: &str) -> bool {
    let is_manner = |pair: &str| pair.is_empty() || pair.starts_with("lang=") || pair.starts_with("embed=");
    query.split('&').all(is_manner)
}

/// Answers that stand in an address: texts, for declared fields alone. A file can't.
pub(crate) fn read(fields: &[Field], query: &str) -> Answers {
    let mut pairs: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        if value.chars().count() <= TEXT_CHARS_MAX {
            pairs.entry(name.into_owned()).or_default().push(value.into_owned());
        }
    }
    let mut given = answers::from_form_data(fields, &pairs);
    let is_file = |name: &str| fields.iter().any(|field| field.name == name && field.kind == FieldType::File);
    given.retain(|name, value| !is_file(name) && *value != Value::Null);
    given
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_declared_fields_are_filled_in_and_only_with_texts() {
        let fields: Vec<Field> = serde_json::from_value(json!([
            {"name": "name", "label": "N", "type": "text"},
            {"name": "source", "label": "S", "type": "hidden"},
            {"name": "cv", "label": "C", "type": "file"},
            {"name": "tags", "label": "T", "type": "multiselect", "options": ["x", "y"]},
            {"name": "ok", "label": "O", "type": "checkbox"},
        ]))
        .unwrap();
        let query = "name=Ada+L&source=%3Cb%3E&cv=1&tags=x&tags=z&ok=true&isAdmin=1&__proto__=1&lang=de";
        let given = read(&fields, query);
        assert_eq!(
            Value::Object(given),
            json!({"name": "Ada L", "source": "<b>", "tags": ["x", "z"], "ok": true})
        );
        assert!(!is_bare(query) && !is_bare("name=x") && is_bare("lang=de&embed=1") && is_bare(""));
        assert!(read(&fields, &format!("name={}", "x".repeat(2_001))).is_empty());
        assert!(read(&fields, "name=%ff&%=&&&==").len() <= 1);
    }

    #[test]
    fn an_address_says_how_the_form_is_shown_and_says_so_again() {
        let shown = |query: &str| Presentation::asked(query, &HeaderMap::new());
        assert_eq!(shown("").query(), "");
        assert_eq!(shown("embed=1&lang=de-CH&x=y").query(), "?lang=de&embed=1");
        assert_eq!(shown("lang=xx&embed=yes").query(), "");
    }
}
