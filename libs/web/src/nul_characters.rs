//! Rejects NUL characters (U+0000) in JSON bodies.
//!
//! JSON allows them and Postgres' text does not, so without this check the caller's error would surface as a database
//! error.

use domain::FieldError;
use serde_json::Value;

/// The JSON escape of NUL. A body without these bytes needs no second pass.
const ESCAPED: &[u8] = br"\u0000";

/// Returns the error of a JSON text with a NUL character.
pub(crate) fn field_error(json: &[u8]) -> Option<FieldError> {
    if !json.windows(ESCAPED.len()).any(|window| window == ESCAPED) {
        return None;
    }
    field_error_of(&serde_json::from_slice(json).ok()?)
}

/// Returns the error of a JSON value with a NUL character.
pub fn field_error_of(value: &Value) -> Option<FieldError> {
    let field = place(value, "")?;
    let message = format!("{field} must not contain a NUL character");
    Some(FieldError::new(field, "nul", message))
}

fn place(value: &Value, path: &str) -> Option<String> {
    match value {
        Value::String(text) => text.contains('\0').then(|| path.to_owned()),
        Value::Array(items) => {
            items.iter().enumerate().find_map(|(at, item)| place(item, &format!("{path}[{at}]")))
        }
        Value::Object(members) => members.iter().find_map(|(name, member)| {
            let dot = if path.is_empty() { "" } else { "." };
            let path = format!("{path}{dot}{}", name.replace('\0', "\u{fffd}"));
            if name.contains('\0') { Some(path) } else { place(member, &path) }
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_a_nul_at_any_depth() {
        let found = |json: &str| field_error(json.as_bytes()).map(|field_error| field_error.field);
        for (json, field) in [
            (r#"{"title": "a\u0000b"}"#, "title"),
            (r#"{"metadata": {"notes": [1, {"x": "\u0000"}]}}"#, "metadata.notes[1].x"),
            (r#"{"fieldMapping": {"a\u0000": "b"}}"#, "fieldMapping.a\u{fffd}"),
            (r#"{"fields": [{"options": ["ok", "\\\u0000"]}]}"#, "fields[0].options[1]"),
        ] {
            assert_eq!(found(json).as_deref(), Some(field), "{json}");
        }
        for json in [r#"{"a": "b"}"#, r#"{"a": "\\u0000"}"#, r#"{"a": "\u00001"#] {
            assert_eq!(found(json), None, "{json}");
        }
    }
}
