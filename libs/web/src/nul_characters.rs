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
    let mut steps = Vec::new();
    if !find(value, &mut steps) {
        return None;
    }
    let path: String = steps.into_iter().rev().collect();
    let field = path.strip_prefix('.').unwrap_or(&path);
    let message = format!("{field} must not contain a NUL character");
    Some(FieldError::new(field, "nul", message))
}

/// Returns whether there is a NUL character, and adds the steps that lead to the first one, last step first. No step is formatted
/// before one is found: a long name around many values would be copied for each of them.
fn find(value: &Value, steps: &mut Vec<String>) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(items) => {
            let found = items.iter().position(|item| find(item, steps));
            steps.extend(found.map(|at| format!("[{at}]")));
            found.is_some()
        }
        Value::Object(members) => {
            let found = members.iter().find(|(name, member)| name.contains('\0') || find(member, steps));
            steps.extend(found.map(|(name, _)| format!(".{}", name.replace('\0', "\u{fffd}"))));
            found.is_some()
        }
        _ => false,
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
            (r#"{".a": [["\u0000"]]}"#, ".a[0][0]"),
            (r#"["\u0000"]"#, "[0]"),
            (r#"{"fields": [{"options": ["ok", "\\\u0000"]}]}"#, "fields[0].options[1]"),
        ] {
            assert_eq!(found(json).as_deref(), Some(field), "{json}");
        }
        for json in [r#"{"a": "b"}"#, r#"{"a": "\\u0000"}"#, r#"{"a": "\u00001"#] {
            assert_eq!(found(json), None, "{json}");
        }
    }
}
