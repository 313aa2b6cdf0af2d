//! Fields of a form: their types, constraints and validation.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

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
/// Maximum length of `help`, in characters.
const MAX_HELP: usize = 1_000;
/// Maximum length of `patternHint`, in characters.
const MAX_PATTERN_HINT: usize = 200;
/// Maximum distance of `min` and `max` of a scale: 0 to 10 has eleven points, and more do not fit on a phone.
const MAX_SCALE_STEPS: f64 = 10.0;

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

/// How a page shows a field that has more than one rendering. The answer is the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Display {
    /// A select as a list that opens: the default.
    Dropdown,
    /// A select as radio buttons, all options in sight.
    Radio,
    /// A number as a row of the whole numbers from `min` to `max`, such as 0 to 10.
    Scale,
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
    /// Explanation below the label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_HELP))]
    pub help: Option<String>,
    /// How pages show the field: a select as `dropdown` (default) or `radio`, a number with `min` and `max` as `scale`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display: Option<Display>,
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
    /// What the pattern expects, in words: the message for an answer that does not match it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_PATTERN_HINT))]
    pub pattern_hint: Option<String>,
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
    /// For a file, in responses: the most bytes that are accepted, the smaller one of `maxFileSize` and the plan's limit.
    /// Ignored in requests.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "ignored_integer")]
    #[schemars(extend("readOnly" = true))]
    pub effective_max_file_size: Option<u64>,
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
    check_length(errors, &path("help"), field.help.as_deref().unwrap_or_default(), 0, MAX_HELP);
    let pattern_hint = field.pattern_hint.as_deref().unwrap_or_default();
    check_length(errors, &path("patternHint"), pattern_hint, 0, MAX_PATTERN_HINT);
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
    check_display(errors, field, path);
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
        ("patternHint", field.pattern_hint.is_some(), field.pattern.is_some(), "fields with a pattern"),
        ("help", field.help.is_some(), field.kind != FieldType::Hidden, "fields that visitors see"),
    ];
    for (part, _, _, applies_to) in parts.into_iter().filter(|(_, is_set, belongs, _)| *is_set && !belongs) {
        let message = format!("{part} applies only to {applies_to}");
        errors.push(FieldError::new(path(part), "not_of_this_type", message));
    }
}

/// Rejects a rendering of another type, and a scale without known points.
fn check_display(errors: &mut Vec<FieldError>, field: &Field, path: &dyn Fn(&str) -> String) {
    let (kind, applies_to) = match field.display {
        None => return,
        Some(Display::Dropdown | Display::Radio) => (FieldType::Select, "select"),
        Some(Display::Scale) => (FieldType::Number, "number"),
    };
    if field.kind != kind {
        let message = format!("this display applies only to fields of type {applies_to}");
        errors.push(FieldError::new(path("display"), "not_of_this_type", message));
    } else if field.display == Some(Display::Scale) && field.scale().is_none() {
        let message = format!(
            "a scale needs whole numbers as min and max, 1 to {MAX_SCALE_STEPS} apart, such as 0 and 10"
        );
        errors.push(FieldError::new(path("display"), "scale", message));
    }
}

impl Field {
    /// Returns the points of a number that is shown as a scale; `None` for other fields.
    pub fn scale(&self) -> Option<RangeInclusive<i64>> {
        let (Some(Display::Scale), Some(min), Some(max)) = (self.display, self.min, self.max) else {
            return None;
        };
        let is_whole = |number: f64| number.fract() == 0.0 && number.abs() < 1e9;
        let is_scale = is_whole(min) && is_whole(max) && (1.0..=MAX_SCALE_STEPS).contains(&(max - min));
        #[expect(clippy::cast_possible_truncation, reason = "both are whole and small")]
        is_scale.then_some(min as i64..=max as i64)
    }
}

/// Deserializes an integer that a response had, and ignores it: fields may be sent back as they were received.
fn ignored_integer<'de, D: Deserializer<'de>>(reader: D) -> Result<Option<u64>, D::Error> {
    integer::<D, u64>(reader).map(|_ignored| None)
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
