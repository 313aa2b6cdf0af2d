//! JSON for people: indented, and no longer than a page can hold.

use serde::Serialize;
use serde_json::Value;

/// Bytes of a value that a page shows.
const BYTES_MAX: usize = 8 << 10;

/// A value of a page.
#[derive(Debug, Serialize)]
pub(super) struct JsonView {
    text: String,
    is_cut: bool,
}

impl JsonView {
    /// Returns a value as indented JSON, cut at its limit; `None` for null.
    pub(super) fn new(value: &Value) -> Option<Self> {
        if value.is_null() {
            return None;
        }
        let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
        let is_cut = text.len() > BYTES_MAX;
        text.truncate(text.floor_char_boundary(BYTES_MAX));
        Some(Self { text, is_cut })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_long_value_is_cut_between_characters() {
        assert!(JsonView::new(&Value::Null).is_none());
        let short = JsonView::new(&json!({ "a": [1] })).unwrap();
        assert_eq!((short.text.as_str(), short.is_cut), ("{\n  \"a\": [\n    1\n  ]\n}", false));
        let long = JsonView::new(&json!("é".repeat(BYTES_MAX))).unwrap();
        assert!(long.is_cut && long.text.len() <= BYTES_MAX && long.text.ends_with('é'));
    }
}
