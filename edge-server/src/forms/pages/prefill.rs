//! Reads answers to prefill from the query of a form's URL.

use std::collections::BTreeMap;

use domain::answers::Answers;
use domain::fields::{Field, FieldType};
use serde_json::Value;

/// Longer values are ignored.
const MAX_TEXT_CHARS: usize = 2_000;
/// Answers in longer queries are ignored.
const MAX_QUERY_BYTES: usize = 8 * 1024;

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
        assert!(read(&fields, &format!("name={}", "x".repeat(2_001))).is_empty());
        assert!(read(&fields, "name=%ff&%=&&&==").len() <= 1);
        let padding = |bytes: usize| format!("name=x&pad={}", "p".repeat(bytes - "name=x&pad=".len()));
        assert_eq!(read(&fields, &padding(MAX_QUERY_BYTES)).len(), 1);
        assert!(read(&fields, &padding(MAX_QUERY_BYTES + 1)).is_empty());
    }
}
