//! Fields of a form: their types, constraints and validation.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::field_error::check_length;
use crate::patterns::{MAX_PATTERN, Pattern};
use crate::{FieldError, json_bytes};

/// Maximum number of fields of one form.
pub const MAX_FIELDS: usize = 100;
/// Maximum size of all fields of a form, as JSON.
pub const FIELDS_BYTES_MAX: usize = 256 << 10;
/// Maximum length of one answer, in characters, whatever the field allows.
pub const MAX_TEXT: usize = 20_000;
/// Maximum number of options of one field.
const MAX_OPTIONS: usize = 200;
/// Maximum length of one option, in characters.
const MAX_OPTION_CHARS: usize = 500;
/// Maximum length of `accept`, in characters.
const MAX_ACCEPT: usize = 500;

/// Type of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FieldType {
    /// One line of text.
    Text,
    /// An e-mail address.
    Email,
    /// Several lines of text.
    Textarea,
    /// A number.
    Number,
    /// One of the options.
    Select,
    /// Any number of the options.
    Multiselect,
    /// Checked or not.
    Checkbox,
    /// A http(s) URL.
    Url,
    /// A telephone number.
    Tel,
    /// A date, `YYYY-MM-DD`.
    Date,
    /// A text that the visitor does not see.
    Hidden,
    /// An uploaded file, by its object id.
    File,
}

impl FieldType {
    /// Returns whether the type is free text, to which `minLength`, `maxLength` and `pattern` apply.
    pub(crate) fn is_free_text(self) -> bool {
        matches!(self, Self::Text | Self::Textarea | Self::Email | Self::Url | Self::Tel | Self::Hidden)
    }

    fn is_choice(self) -> bool {
        matches!(self, Self::Select | Self::Multiselect)
    }
}

/// Condition on another field's answer, without which the field is hidden.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShowIf {
    /// Name of the other field.
    pub field: String,
    /// Its answer; for a multiselect, one of its answers.
    pub equals: Value,
}

/// A field of a form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Field {
    /// Key of the answer in a submission.
    #[schemars(length(min = 1, max = 64), regex(pattern = "^[A-Za-z0-9_-]+$"))]
    pub name: String,
    /// Label that visitors read.
    #[schemars(length(min = 1, max = 500))]
    pub label: String,
    /// Type of the answer.
    #[serde(rename = "type")]
    pub kind: FieldType,
    /// Whether an answer is required.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub required: bool,
    /// Example text in an empty input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 500))]
    pub placeholder: Option<String>,
    /// Options of a select or multiselect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_OPTIONS), inner(length(min = 1, max = MAX_OPTION_CHARS)))]
    pub options: Vec<String>,
    /// Minimum length of a text, in characters.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "integer")]
    #[schemars(range(max = MAX_TEXT))]
    pub min_length: Option<u32>,
    /// Maximum length of a text, in characters.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "integer")]
    #[schemars(range(max = MAX_TEXT))]
    pub max_length: Option<u32>,
    /// Regular expression that the whole text must match, in the syntax of the `regex` crate (linear time).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", length(max = MAX_PATTERN), extend("format" = "regex"))]
    pub pattern: Option<Pattern>,
    /// Minimum of a number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// Maximum of a number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
    /// For a file: accepted extensions and media types, as in HTML.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_ACCEPT))]
    pub accept: Option<String>,
    /// For a file: maximum size in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "integer")]
    #[schemars(range(min = 1))]
    pub max_file_size: Option<u64>,
    /// Condition for showing the field; always shown if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub show_if: Option<ShowIf>,
}

/// Validates a form's fields. Errors have paths such as `fields[2].options`.
pub fn check(fields: &[Field]) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if fields.is_empty() || fields.len() > MAX_FIELDS {
        errors.push(FieldError::new("fields", "count", format!("a form needs 1 to {MAX_FIELDS} fields")));
    }
    let bytes = json_bytes(fields);
    if bytes > FIELDS_BYTES_MAX {
        let max = FIELDS_BYTES_MAX >> 10;
        let message =
            format!("the fields of a form may have at most {max} KB as JSON, these have {bytes} bytes");
        errors.push(FieldError::new("fields", "too_large", message));
    }
    let mut earlier = BTreeSet::new();
    for (at, field) in fields.iter().enumerate() {
        let path = |part: &str| format!("fields[{at}].{part}");
        check_one(&mut errors, field, &path);
        if let Some(show_if) = &field.show_if
            && !earlier.contains(show_if.field.as_str())
        {
            let message =
                format!("showIf must name a field that stands before this one, not `{}`", show_if.field);
            errors.push(FieldError::new(path("showIf.field"), "unknown_field", message));
        }
        if !earlier.insert(field.name.as_str()) {
            let message = format!("two fields are called `{}`; names must differ", field.name);
            errors.push(FieldError::new(path("name"), "duplicate", message));
        }
    }
    errors
}

fn check_one(errors: &mut Vec<FieldError>, field: &Field, path: &dyn Fn(&str) -> String) {
    check_length(errors, &path("name"), &field.name, 1, 64);
    check_length(errors, &path("label"), &field.label, 1, 500);
    check_length(errors, &path("placeholder"), field.placeholder.as_deref().unwrap_or_default(), 0, 500);
    check_length(errors, &path("accept"), field.accept.as_deref().unwrap_or_default(), 0, MAX_ACCEPT);
    if field.max_file_size == Some(0) {
        errors.push(FieldError::new(path("maxFileSize"), "range", "maxFileSize must be at least 1"));
    }
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !field.name.chars().all(word) {
        let message = "a field's name may have only letters, digits, `_` and `-`";
        errors.push(FieldError::new(path("name"), "characters", message));
    }
    for (at, option) in field.options.iter().enumerate() {
        check_length(errors, &path(&format!("options[{at}]")), option, 1, MAX_OPTION_CHARS);
    }
    if field.kind.is_choice() == field.options.is_empty() || field.options.len() > MAX_OPTIONS {
        let message = format!("options belong to select and multiselect, 1 to {MAX_OPTIONS} of them");
        errors.push(FieldError::new(path("options"), "options", message));
    }
    let distinct: BTreeSet<_> = field.options.iter().collect();
    if distinct.len() != field.options.len() {
        errors.push(FieldError::new(path("options"), "options", "options must differ"));
    }
    if field.options.iter().any(|option| option.trim().is_empty()) {
        errors.push(FieldError::new(path("options"), "options", "an option must not be blank"));
    }
    check_applicability(errors, field, path);
    let too_long = |chars: Option<u32>| chars.is_some_and(|chars| chars as usize > MAX_TEXT);
    for (part, chars) in [("minLength", field.min_length), ("maxLength", field.max_length)] {
        if too_long(chars) {
            let message = format!("no answer has more than {MAX_TEXT} characters");
            errors.push(FieldError::new(path(part), "range", message));
        }
    }
    if matches!((field.min_length, field.max_length), (Some(min), Some(max)) if min > max) {
        errors.push(FieldError::new(path("minLength"), "range", "minLength is above maxLength"));
    }
    if matches!((field.min, field.max), (Some(min), Some(max)) if min > max) {
        errors.push(FieldError::new(path("min"), "range", "min is above max"));
    }
    if let Some(pattern) = &field.pattern
        && let Err(message) = pattern.check()
    {
        errors.push(FieldError::new(path("pattern"), "pattern", message));
    }
}

/// Rejects constraints that don't apply to the type: they would silently have no effect.
fn check_applicability(errors: &mut Vec<FieldError>, field: &Field, path: &dyn Fn(&str) -> String) {
    let (is_text, is_number) = (field.kind.is_free_text(), field.kind == FieldType::Number);
    let is_file = field.kind == FieldType::File;
    let parts = [
        ("minLength", field.min_length.is_some(), is_text, "text fields"),
        ("maxLength", field.max_length.is_some(), is_text, "text fields"),
        ("pattern", field.pattern.is_some(), is_text, "text fields"),
        ("min", field.min.is_some(), is_number, "fields of type number"),
        ("max", field.max.is_some(), is_number, "fields of type number"),
        ("accept", field.accept.is_some(), is_file, "fields of type file"),
        ("maxFileSize", field.max_file_size.is_some(), is_file, "fields of type file"),
    ];
    for (part, _, _, applies_to) in parts.into_iter().filter(|(_, is_set, belongs, _)| *is_set && !belongs) {
        let message = format!("{part} applies only to {applies_to}");
        errors.push(FieldError::new(path(part), "not_of_this_type", message));
    }
}

/// Deserializes an integer in any notation: JSON does not distinguish `1` from `1.0`.
fn integer<'de, D: Deserializer<'de>, N: TryFrom<u64>>(reader: D) -> Result<Option<N>, D::Error> {
    let Some(number) = Option::<serde_json::Number>::deserialize(reader)? else { return Ok(None) };
    let float = || number.as_f64().filter(|float| float.fract() == 0.0 && (0.0..9e15).contains(float));
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a float of that size holds every whole number exactly"
    )]
    let integer = number.as_u64().or_else(|| float().map(|float| float as u64));
    let read = integer.and_then(|integer| N::try_from(integer).ok());
    let refused = || serde::de::Error::custom(format!("invalid number: `{number}`, expected a whole one"));
    read.map(Some).ok_or_else(refused)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn errors(fields: Value) -> Vec<String> {
        let fields: Vec<Field> = serde_json::from_value(fields).unwrap();
        check(&fields).into_iter().map(|error| error.field).collect()
    }

    #[test]
    fn an_error_has_the_path_of_the_field() {
        let name = json!({"name": "a", "label": "A", "type": "text"});
        assert_eq!(errors(json!([name])), Vec::<String>::new());
        assert_eq!(errors(json!([])), ["fields"]);
        assert_eq!(errors(json!([name, name])), ["fields[1].name"]);
        let cases = [
            (json!({"name": "b c", "label": "B", "type": "text"}), "fields[1].name"),
            (json!({"name": "b", "label": "", "type": "text"}), "fields[1].label"),
            (json!({"name": "b", "label": "B", "type": "select"}), "fields[1].options"),
            (json!({"name": "b", "label": "B", "type": "text", "options": ["x"]}), "fields[1].options"),
            (
                json!({"name": "b", "label": "B", "type": "select", "options": ["x", "x"]}),
                "fields[1].options",
            ),
            (json!({"name": "b", "label": "B", "type": "text", "pattern": "("}), "fields[1].pattern"),
            (json!({"name": "b", "label": "B", "type": "number", "min": 2, "max": 1}), "fields[1].min"),
            (
                json!({"name": "b", "label": "B", "type": "text", "showIf": {"field": "c", "equals": 1}}),
                "fields[1].showIf.field",
            ),
        ];
        for (field, place) in cases {
            assert_eq!(errors(json!([name, field])), [place]);
        }
    }

    #[test]
    fn rejects_a_constraint_that_does_not_apply_to_the_type() {
        let set = [
            ("minLength", json!(1)),
            ("maxLength", json!(2)),
            ("pattern", json!("a")),
            ("min", json!(1)),
            ("max", json!(2)),
            ("accept", json!("image/*")),
            ("maxFileSize", json!(5)),
        ];
        let accepted = |kind: &str| {
            let is_accepted = |(part, value): &&(&str, Value)| {
                let mut field = json!({"name": "a", "label": "A", "type": kind, *part: value});
                if kind.contains("select") {
                    field["options"] = json!(["x"]);
                }
                let wrong = errors(json!([field]));
                assert!(
                    wrong.is_empty() || wrong == [format!("fields[0].{part}")],
                    "{kind} {part}: {wrong:?}"
                );
                wrong.is_empty()
            };
            set.iter().filter(is_accepted).map(|(part, _)| *part).collect::<Vec<_>>()
        };
        for kind in ["text", "textarea", "email", "url", "tel", "hidden"] {
            assert_eq!(accepted(kind), ["minLength", "maxLength", "pattern"], "{kind}");
        }
        for kind in ["select", "multiselect", "checkbox", "date"] {
            assert!(accepted(kind).is_empty(), "{kind}");
        }
        assert_eq!(accepted("number"), ["min", "max"]);
        assert_eq!(accepted("file"), ["accept", "maxFileSize"]);
    }

    #[test]
    fn rejects_impossible_lengths_and_accepts_integers_with_a_point() {
        let of = |min: Value, max: Value| json!([{"name": "a", "label": "A", "type": "text", "minLength": min, "maxLength": max}]);
        assert_eq!(errors(of(json!(2.0), json!(20_000))), Vec::<String>::new());
        assert_eq!(errors(of(json!(3), json!(2))), ["fields[0].minLength"]);
        assert_eq!(errors(of(json!(1), json!(20_001))), ["fields[0].maxLength"]);
        for wrong in [json!(1.5), json!(-1), json!("1"), json!(1e300)] {
            assert!(serde_json::from_value::<Vec<Field>>(of(wrong, Value::Null)).is_err());
        }
    }

    #[test]
    fn rejects_patterns_that_need_much_memory_or_escape_their_group() {
        let check = |text: &str| Pattern::from(text.to_owned()).check();
        for wrong in [r"(\w{1000}){1000}", "a)|(?:b", "(", "(?x)a # b", &"a".repeat(501)] {
            assert!(check(wrong).is_err(), "{wrong}");
        }
        for right in [r"[a-z]+\d?", "a|b", "(?x)a # b\n", "(?i)a", ""] {
            assert_eq!(check(right), Ok(()), "{right}");
        }
    }
}
