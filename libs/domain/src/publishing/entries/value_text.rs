//! The display text of an entry's values.

use serde_json::Value;

/// Returns a value as it is displayed: null as nothing, lists with commas; `None` if it can't be displayed.
pub(super) fn value_text(value: &Value) -> Option<String> {
    match value {
        Value::Null => Some(String::new()),
        Value::Bool(bool) => Some(bool.to_string()),
        Value::Number(number) => Some(number.to_string()),
        Value::String(text) => Some(text.clone()),
        Value::Array(items) => {
            let scalar = |item: &Value| if item.is_array() { None } else { value_text(item) };
            Some(items.iter().map(scalar).collect::<Option<Vec<_>>>()?.join(", "))
        }
        Value::Object(_) => None,
    }
}
