//! Reads the query of a form's URL: the presentation, and answers to prefill.

use std::collections::BTreeMap;

use domain::answers::Answers;
use domain::fields::{Field, FieldType};
use http::HeaderMap;
use serde_json::Value;

use super::languages::Language;
use super::page::Presentation;

/// Longer values are ignored.
const MAX_TEXT_CHARS: usize = 2_000;
/// Answers in longer queries are ignored.
const MAX_QUERY_BYTES: usize = 8 * 1024;

impl Presentation {
    /// Reads the query, and the headers for the language if the query has none.
    pub(crate) fn from_request(query: &str, headers: &HeaderMap) -> Self {
        Self::from_query(query, || Language::preferred(headers))
    }

    /// Reads the query; `preferred` returns the language if the query has none.
    pub(crate) fn from_query(query: &str, preferred: impl FnOnce() -> Language) -> Self {
        let value = |name: &str| {
            form_urlencoded::parse(query.as_bytes()).find(|(key, _)| key == name).map(|(_, value)| value)
        };
        Self::new(value("lang").as_deref(), value("embed").as_deref(), preferred)
    }

    /// Takes the language and framing of a posted form, or the language of its headers.
    pub(crate) fn from_form(language: Option<&str>, embedded: Option<&str>, headers: &HeaderMap) -> Self {
        Self::new(language, embedded, || Language::preferred(headers))
    }

    fn new(language: Option<&str>, embedded: Option<&str>, preferred: impl FnOnce() -> Language) -> Self {
        let explicit = language.and_then(Language::from_tag);
        Self {
            language: explicit.unwrap_or_else(preferred),
            is_language_explicit: explicit.is_some(),
            is_embedded: embedded == Some("1"),
        }
    }

    /// Returns the query that leads to the same presentation.
    pub(crate) fn query(self) -> String {
        let language = self.is_language_explicit.then(|| format!("lang={}", self.language.code()));
        let embedded = self.is_embedded.then(|| "embed=1".to_owned());
        let parts: Vec<_> = language.into_iter().chain(embedded).collect();
        if parts.is_empty() { String::new() } else { format!("?{}", parts.join("&")) }
    }
}

/// Returns whether a query has no answers, only the presentation.
pub(crate) fn is_bare(query: &str) -> bool {
    let is_presentation =
        |pair: &str| pair.is_empty() || pair.starts_with("lang=") || pair.starts_with("embed=");
    query.split('&').all(is_presentation)
}

/// Reads answers from a query: text for declared fields. Files can't be prefilled.
pub(crate) fn read(fields: &[Field], query: &str) -> Answers {
    if query.len() > MAX_QUERY_BYTES {
        return Answers::new();
    }
    let mut pairs: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        if value.chars().count() <= MAX_TEXT_CHARS {
            pairs.entry(name.into_owned()).or_default().push(value.into_owned());
        }
    }
    let mut answers = domain::answers::from_form_data(fields, &pairs);
    let is_file = |name: &str| fields.iter().any(|field| field.name == name && field.kind == FieldType::File);
    answers.retain(|name, value| !is_file(name) && *value != Value::Null);
    answers
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn prefills_only_declared_fields_with_text() {
        let fields: Vec<Field> = serde_json::from_value(json!([
            {"name": "name", "label": "N", "type": "text"},
            {"name": "source", "label": "S", "type": "hidden"},
            {"name": "cv", "label": "C", "type": "file"},
            {"name": "tags", "label": "T", "type": "multiselect", "options": ["x", "y"]},
            {"name": "ok", "label": "O", "type": "checkbox"},
        ]))
        .unwrap();
        let query = "name=Ada+L&source=%3Cb%3E&cv=1&tags=x&tags=z&ok=true&isAdmin=1&__proto__=1&lang=de";
        let answers = read(&fields, query);
        assert_eq!(
            Value::Object(answers),
            json!({"name": "Ada L", "source": "<b>", "tags": ["x", "z"], "ok": true})
        );
        assert!(!is_bare(query) && !is_bare("name=x") && is_bare("lang=de&embed=1") && is_bare(""));
        assert!(read(&fields, &format!("name={}", "x".repeat(2_001))).is_empty());
        assert!(read(&fields, "name=%ff&%=&&&==").len() <= 1);
        let padding = |bytes: usize| format!("name=x&pad={}", "p".repeat(bytes - "name=x&pad=".len()));
        assert_eq!(read(&fields, &padding(MAX_QUERY_BYTES)).len(), 1);
        assert!(read(&fields, &padding(MAX_QUERY_BYTES + 1)).is_empty());
    }

    #[test]
    fn the_presentation_of_a_query_round_trips() {
        let shown = |query: &str| Presentation::from_request(query, &HeaderMap::new());
        assert_eq!(shown("").query(), "");
        assert_eq!(shown("embed=1&lang=de-CH&x=y").query(), "?lang=de&embed=1");
        assert_eq!(shown("lang=xx&embed=yes").query(), "");
    }
}
