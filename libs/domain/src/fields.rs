//! One field of a form: what it asks and what it accepts.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Complaint;
use crate::complaint::check_length;

/// Most fields of one form.
pub const MAX_FIELDS: usize = 100;
/// Most options of one choice.
const MAX_OPTIONS: usize = 200;
/// Most characters of one option.
const MAX_OPTION_CHARS: usize = 500;
/// Most characters of a `pattern`, and most bytes of the automaton made of it.
const MAX_PATTERN: usize = 500;
const MAX_PATTERN_BYTES: usize = 1 << 20;

/// What kind of answer a field takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FieldType {
    /// One line.
    Text,
    /// An e-mail address.
    Email,
    /// Several lines.
    Textarea,
    /// A number.
    Number,
    /// One of the options.
    Select,
    /// Any of the options.
    Multiselect,
    /// Yes or no.
    Checkbox,
    /// A web address.
    Url,
    /// A telephone number.
    Tel,
    /// A day, `YYYY-MM-DD`.
    Date,
    /// Text the visitor doesn't see.
    Hidden,
    /// An uploaded file, by its object id.
    File,
}

/// Shown only while another field has this answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShowIf {
    /// Name of the other field.
    pub field: String,
    /// Its answer; of a multiselect, one of its answers.
    pub equals: Value,
}

/// One question of a form.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Field {
    /// Key of the answer in a submission.
    #[schemars(length(min = 1, max = 64), regex(pattern = "^[A-Za-z0-9_-]+$"))]
    pub name: String,
    /// What people read.
    #[schemars(length(min = 1, max = 500))]
    pub label: String,
    /// What kind of answer.
    #[serde(rename = "type")]
    pub kind: FieldType,
    /// Whether an answer must be given.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub required: bool,
    /// Example text in an empty input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 500))]
    pub placeholder: Option<String>,
    /// The choices of a select or multiselect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = MAX_OPTIONS), inner(length(min = 1, max = MAX_OPTION_CHARS)))]
    pub options: Vec<String>,
    /// Fewest characters of a text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_length: Option<u32>,
    /// Most characters of a text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_length: Option<u32>,
    /// Regular expression the whole text must match (the `regex` crate's syntax: linear time).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = MAX_PATTERN), extend("format" = "regex"))]
    pub pattern: Option<String>,
    /// Smallest number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// Largest number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
    /// Of a file: extensions or a media-type pattern.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accept: Option<String>,
    /// Of a file: most bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_file_size: Option<u64>,
    /// When the field is shown; always if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub show_if: Option<ShowIf>,
}

/// What is wrong with a form's fields, each complaint with its path (`fields[2].options`).
pub fn check(fields: &[Field]) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    if fields.is_empty() || fields.len() > MAX_FIELDS {
        complaints.push(Complaint::new("fields", "count", format!("a form needs 1 to {MAX_FIELDS} fields")));
    }
    let mut earlier = BTreeSet::new();
    for (at, field) in fields.iter().enumerate() {
        let path = |part: &str| format!("fields[{at}].{part}");
        check_one(&mut complaints, field, &path);
        if let Some(show_if) = &field.show_if
            && !earlier.contains(show_if.field.as_str())
        {
            let message =
                format!("showIf must name a field that stands before this one, not `{}`", show_if.field);
            complaints.push(Complaint::new(path("showIf.field"), "unknown_field", message));
        }
        if !earlier.insert(field.name.as_str()) {
            let message = format!("two fields are called `{}`; names must differ", field.name);
            complaints.push(Complaint::new(path("name"), "duplicate", message));
        }
    }
    complaints
}

fn check_one(complaints: &mut Vec<Complaint>, field: &Field, path: &dyn Fn(&str) -> String) {
    check_length(complaints, &path("name"), &field.name, 1, 64);
    check_length(complaints, &path("label"), &field.label, 1, 500);
    check_length(complaints, &path("placeholder"), field.placeholder.as_deref().unwrap_or_default(), 0, 500);
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !field.name.chars().all(word) {
        let message = "a field's name may have only letters, digits, `_` and `-`";
        complaints.push(Complaint::new(path("name"), "characters", message));
    }
    for (at, option) in field.options.iter().enumerate() {
        check_length(complaints, &path(&format!("options[{at}]")), option, 1, MAX_OPTION_CHARS);
    }
    let is_choice = matches!(field.kind, FieldType::Select | FieldType::Multiselect);
    if is_choice == field.options.is_empty() || field.options.len() > MAX_OPTIONS {
        let message = format!("options belong to select and multiselect, 1 to {MAX_OPTIONS} of them");
        complaints.push(Complaint::new(path("options"), "options", message));
    }
    let distinct: BTreeSet<_> = field.options.iter().collect();
    if distinct.len() != field.options.len() {
        complaints.push(Complaint::new(path("options"), "options", "options must differ"));
    }
    if matches!((field.min_length, field.max_length), (Some(min), Some(max)) if min > max) {
        complaints.push(Complaint::new(path("minLength"), "range", "minLength is above maxLength"));
    }
    if matches!((field.min, field.max), (Some(min), Some(max)) if min > max) {
        complaints.push(Complaint::new(path("min"), "range", "min is above max"));
    }
    if let Some(pattern) = &field.pattern
        && let Err(message) = compile(pattern)
    {
        complaints.push(Complaint::new(path("pattern"), "pattern", message));
    }
}

/// The pattern as an expression for the whole text.
///
/// # Errors
/// A sentence saying what is wrong with it.
pub(crate) fn compile(pattern: &str) -> Result<regex::Regex, String> {
    if pattern.chars().count() > MAX_PATTERN {
        return Err(format!("pattern may have at most {MAX_PATTERN} characters"));
    }
    regex::RegexBuilder::new(&format!("^(?:{pattern})$"))
        .size_limit(MAX_PATTERN_BYTES)
        .build()
        .map_err(|error| format!("pattern is not a regular expression we can run: {error}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn complaints(fields: Value) -> Vec<String> {
        let fields: Vec<Field> = serde_json::from_value(fields).unwrap();
        check(&fields).into_iter().map(|complaint| complaint.field).collect()
    }

    #[test]
    fn a_complaint_names_the_place() {
        let name = json!({"name": "a", "label": "A", "type": "text"});
        assert_eq!(complaints(json!([name])), Vec::<String>::new());
        assert_eq!(complaints(json!([])), ["fields"]);
        assert_eq!(complaints(json!([name, name])), ["fields[1].name"]);
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
            assert_eq!(complaints(json!([name, field])), [place]);
        }
    }

    #[test]
    fn a_pattern_that_would_need_much_memory_is_refused() {
        assert!(compile(r"(\w{1000}){1000}").is_err());
        assert!(compile(r"[a-z]+\d?").is_ok());
    }
}
