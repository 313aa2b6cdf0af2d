//! Masks the values of variables in logs, and cuts what is too long.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use serde_json::{Map, Value};

use crate::expressions::for_url;

/// Minimum length of a masked value, in characters. Shorter ones occur by chance.
pub const MASKED_CHARS_MIN: usize = 6;
/// Maximum size of one side of a step in the log, in bytes.
pub const LOGGED_BYTES_MAX: usize = 64 << 10;
/// What stands in place of a masked value.
pub const MASK: &str = "***";

/// Masks values in every form that a step may have written: as they are, escaped in JSON, in URLs (both notations of a
/// space) and HTML, and the whole value in base64. Parts of a value and its hashes are not recognized.
#[derive(Clone, Default)]
pub struct Masking {
    forms: Vec<String>,
}

impl Masking {
    /// Prepares to mask these values.
    pub fn new<'a>(values: impl IntoIterator<Item = &'a str>) -> Self {
        let mut forms: Vec<String> = values
            .into_iter()
            .flat_map(|value| [value, value.trim()])
            .filter(|value| value.chars().count() >= MASKED_CHARS_MIN)
            .flat_map(forms_of)
            .collect();
        // A form may contain another one, so the longest is masked first.
        forms.sort_by(|a, b| b.len().cmp(&a.len()).then(a.cmp(b)));
        forms.dedup();
        Self { forms }
    }

    /// Masks a text.
    pub fn text<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut masked = Cow::Borrowed(text);
        for form in &self.forms {
            if masked.contains(form.as_str()) {
                masked = Cow::Owned(masked.replace(form.as_str(), MASK));
            }
        }
        masked
    }

    /// Masks all texts of a JSON value, the names of members, and numbers.
    pub fn json(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text).into_owned()),
            Value::Number(number) => {
                let text = number.to_string();
                match self.text(&text) {
                    Cow::Borrowed(_) => value.clone(),
                    Cow::Owned(masked) => Value::String(masked),
                }
            }
            Value::Array(list) => list.iter().map(|value| self.json(value)).collect(),
            Value::Object(object) => {
                let members =
                    object.iter().map(|(name, value)| (self.text(name).into_owned(), self.json(value)));
                Value::Object(members.collect::<Map<_, _>>())
            }
            other => other.clone(),
        }
    }

    /// Masks a value, then cuts it: what is too long becomes `{"truncated": true, "bytes": …, "beginning": "…"}`.
    /// Masking comes first, else a cut could leave half of a value.
    pub fn logged(&self, value: &Value) -> Value {
        cap(self.json(value))
    }
}

impl std::fmt::Debug for Masking {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Masking({} forms)", self.forms.len())
    }
}

fn forms_of(value: &str) -> Vec<String> {
    let quoted = Value::from(value).to_string();
    let in_json = quoted[1..quoted.len() - 1].to_owned();
    let in_url = for_url(value);
    let in_form: String = url::form_urlencoded::byte_serialize(value.as_bytes()).collect();
    let in_html = html_escape::encode_quoted_attribute(value).into_owned();
    let lower_case_url = lower_case_escapes(&in_url);
    let base64 = [STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD].map(|engine| engine.encode(value));
    let mut forms = vec![value.to_owned(), in_json, in_url, lower_case_url, in_form, in_html];
    forms.extend(base64);
    forms
}

fn lower_case_escapes(text: &str) -> String {
    let mut left = 0u8;
    let lower = |char: char| {
        left = if char == '%' { 3 } else { left };
        let is_escape = left > 0;
        left = left.saturating_sub(1);
        if is_escape { char.to_ascii_lowercase() } else { char }
    };
    text.chars().map(lower).collect()
}

/// Cuts a value that is longer than [`LOGGED_BYTES_MAX`] as JSON, with a mark that says how long it was.
pub fn cap(value: Value) -> Value {
    let bytes = domain::json_bytes(&value);
    if bytes <= LOGGED_BYTES_MAX {
        return value;
    }
    let text = match value {
        Value::String(text) => text,
        other => other.to_string(),
    };
    // As a JSON string the beginning may grow by its escapes, to six times its size.
    let (mut end, mut size) = (0, 0);
    for (at, char) in text.char_indices() {
        size += match char {
            '"' | '\\' => 2,
            _ if char.is_control() => 6,
            _ => char.len_utf8(),
        };
        if size > LOGGED_BYTES_MAX - 128 {
            break;
        }
        end = at + char.len_utf8();
    }
    serde_json::json!({"truncated": true, "bytes": bytes, "beginning": &text[..end]})
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_is_masked_in_every_form() {
        let secret = "s3cret \"ü/+&<\n";
        let masking = Masking::new([secret, "short", "abcdef"]);
        for form in forms_of(secret) {
            let text = format!("before {form} after");
            assert_eq!(masking.text(&text), "before *** after", "{form:?}");
        }
        assert_eq!(masking.text("a short abcde text"), "a short abcde text");
        assert_eq!(masking.text("xabcdefx"), "x***x");
        let json = json!({"a": [secret, 1], "abcdef": {"b": json!({"c": secret}).to_string()}});
        assert_eq!(masking.json(&json), json!({"a": ["***", 1], "***": {"b": "{\"c\":\"***\"}"}}));
    }

    #[test]
    fn a_number_and_a_longer_value_are_masked_whole() {
        let masking = Masking::new(["123456", "1234567890", " padded1 "]);
        assert_eq!(masking.json(&json!([1_234_567_890, 123_456, 12])), json!(["***", "***", 12]));
        assert_eq!(masking.text("padded1"), "***");
        assert!(!format!("{masking:?}").contains("123456"));
    }

    #[test]
    fn a_long_value_is_cut_and_says_so() {
        let text = "ü\"\n".repeat(40_000);
        let cut = Masking::default().logged(&json!(text));
        assert!(domain::json_bytes(&cut) <= LOGGED_BYTES_MAX);
        assert!(domain::json_bytes(&cut) > LOGGED_BYTES_MAX / 2);
        assert_eq!(cut["bytes"], json!(domain::json_bytes(&json!(text))));
        assert!(text.starts_with(cut["beginning"].as_str().unwrap()));
        let list = json!(vec!["abcdef-secret"; 20_000]);
        let cut = Masking::new(["abcdef-secret"]).logged(&list);
        assert!(cut["truncated"] == json!(true) && !cut.to_string().contains("secret"));
        assert_eq!(cap(json!({"a": 1})), json!({"a": 1}));
    }
}
