//! Validation of the answers to a form.
//!
//! The edge validates new submissions with it, the control plane validates edits, and the tests check both. Its
//! result is stored: only answers to visible fields, without unknown keys.

mod values;

#[cfg(test)]
mod schema_tests;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::FieldError;
use crate::fields::{Field, FieldType, ShowIf};

pub use values::is_email;

/// Above this number of bytes to match against patterns, validation is slow: up to some twenty microseconds a byte.
const SLOW_BYTES: usize = 256;

/// Answers by field name.
pub type Answers = Map<String, Value>;

/// Validates answers and returns those to store.
///
/// Fields hidden by `showIf` are neither validated nor stored; unknown keys are dropped; an empty text counts as no
/// answer. Returns at most one error for each field.
pub fn check(fields: &[Field], given: &Answers) -> Result<Answers, Vec<FieldError>> {
    let mut accepted = Answers::new();
    let mut errors = Vec::new();
    let mut shown = BTreeSet::new();
    for field in fields {
        if field.show_if.as_ref().is_some_and(|rule| !applies(rule, &shown, given)) {
            continue;
        }
        shown.insert(field.name.as_str());
        match given.get(&field.name).filter(|value| !is_blank(value)) {
            Some(value) => match values::check(field, value) {
                Ok(()) => drop(accepted.insert(field.name.clone(), value.clone())),
                Err((code, message)) => errors.push(FieldError::new(&field.name, code, message)),
            },
            None if field.required => {
                errors.push(FieldError::new(&field.name, "required", format!("{} is required", field.label)));
            }
            None => {}
        }
    }
    if errors.is_empty() { Ok(accepted) } else { Err(errors) }
}

/// Returns whether [`check`] may block the runtime for too long: a pattern is not compiled yet, or there is much text
/// to match.
pub fn is_slow(fields: &[Field], given: &Answers) -> bool {
    let mut bytes = 0;
    fields.iter().any(|field| {
        let answer = given.get(&field.name).and_then(Value::as_str);
        let (Some(pattern), Some(text)) = (&field.pattern, answer) else { return false };
        bytes += text.len();
        !pattern.is_compiled() || bytes > SLOW_BYTES
    })
}

/// Merges `others` into answers; null removes an answer.
pub fn merge(answers: &Answers, others: Answers) -> Answers {
    let mut merged = answers.clone();
    for (name, answer) in others {
        if answer.is_null() {
            merged.remove(&name);
        } else {
            merged.insert(name, answer);
        }
    }
    merged
}

/// Adds to the answers `accepted` of an edited submission the answers of `before` to fields that the form no longer has,
/// unless `changes` sets them to null.
pub fn retain_removed_fields(
    mut accepted: Answers,
    fields: &[Field],
    before: &Answers,
    changes: &Answers,
) -> Answers {
    for (name, answer) in before {
        let is_asked = fields.iter().any(|field| field.name == *name);
        if !is_asked && !changes.get(name).is_some_and(Value::is_null) {
            accepted.insert(name.clone(), answer.clone());
        }
    }
    accepted
}

/// Converts the values of an HTML form to answers by the type of their field. A value that can't be converted stays a
/// text, which [`check`] rejects. Files can't be submitted this way.
pub fn from_form_data(fields: &[Field], pairs: &BTreeMap<String, Vec<String>>) -> Answers {
    let read = |field: &Field, values: &[String]| match field.kind {
        FieldType::Multiselect => Value::from(values.to_vec()),
        FieldType::Checkbox => Value::Bool(values.iter().any(|value| value != "false" && !value.is_empty())),
        FieldType::Number => read_number(values.first().map_or("", String::as_str).trim()),
        _ => Value::from(values.first().map_or("", String::as_str)),
    };
    fields
        .iter()
        .filter_map(|field| Some((field.name.clone(), read(field, pairs.get(&field.name)?))))
        .collect()
}

/// Parses a number as browsers write it, including `.5` and `+1`; any other text stays a text.
fn read_number(text: &str) -> Value {
    let is_written_so = |c: char| c.is_ascii_digit() || "+-.eE".contains(c);
    // Integers first: a float represents only 53 bits of them.
    let whole = || text.parse::<serde_json::Number>().ok();
    let float = || {
        let float = text.chars().all(is_written_so).then(|| text.parse().ok())?;
        float.and_then(serde_json::Number::from_f64)
    };
    whole().or_else(float).map_or_else(|| Value::from(text), Value::Number)
}

/// Returns whether the other field of a rule is itself shown and has the rule's answer. An unchecked checkbox is
/// submitted as no answer, and so is an empty text.
fn applies(rule: &ShowIf, shown: &BTreeSet<&str>, given: &Answers) -> bool {
    shown.contains(rule.field.as_str())
        && match given.get(&rule.field).filter(|value| !is_blank(value)) {
            Some(Value::Array(chosen)) if !rule.equals.is_array() => {
                chosen.iter().any(|one| values::is_same(one, &rule.equals))
            }
            Some(value) => values::is_same(value, &rule.equals),
            None => rule.equals == Value::Bool(false) || is_blank(&rule.equals),
        }
}

fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}
