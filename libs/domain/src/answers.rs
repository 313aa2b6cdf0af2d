//! Which answers a form accepts.
//!
//! One function decides, for the edge that takes submissions, the control plane that edits them, and the
//! tests. What it lets through is what is stored: shown fields only, unknown keys left out.

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

/// More text than this for patterns takes long: up to some twenty microseconds a byte.
const HEAVY_BYTES: usize = 256;

/// The answers to be stored, by field name.
pub type Answers = Map<String, Value>;

/// The answers a form keeps of what was `given`.
///
/// Fields hidden by `showIf` are neither checked nor kept; keys the form doesn't have are left out; an
/// empty text counts as no answer.
///
/// # Errors
/// Everything wrong, one error a field.
pub fn check(fields: &[Field], given: &Answers) -> Result<Answers, Vec<FieldError>> {
    let mut kept = Answers::new();
    let mut errors = Vec::new();
    let mut shown = BTreeSet::new();
    for field in fields {
        if field.show_if.as_ref().is_some_and(|rule| !applies(rule, &shown, given)) {
            continue;
        }
        shown.insert(field.name.as_str());
        match given.get(&field.name).filter(|value| !is_blank(value)) {
            Some(value) => match values::check(field, value) {
                Ok(()) => drop(kept.insert(field.name.clone(), value.clone())),
                Err((code, message)) => errors.push(FieldError::new(&field.name, code, message)),
            },
            None if field.required => {
                errors.push(FieldError::new(&field.name, "required", format!("{} is required", field.label)));
            }
            None => {}
        }
    }
    if errors.is_empty() { Ok(kept) } else { Err(errors) }
}

/// Whether [`check`] may take long enough to be done where nobody else waits for it: a pattern has to be compiled first, or
/// there is much to match.
pub fn is_heavy(fields: &[Field], given: &Answers) -> bool {
    let mut bytes = 0;
    fields.iter().any(|field| {
        let answer = given.get(&field.name).and_then(Value::as_str);
        let (Some(pattern), Some(text)) = (&field.pattern, answer) else { return false };
        bytes += text.len();
        !pattern.is_compiled() || bytes > HEAVY_BYTES
    })
}

/// Answers with others put over them; a null takes one away.
pub fn merged(answers: &Answers, others: Answers) -> Answers {
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

/// What a merge leaves of a submission: with the answers `kept` those that were there to questions which the form no
/// longer asks, unless a null of `changes` takes them away.
pub fn with_past(mut kept: Answers, fields: &[Field], before: &Answers, changes: &Answers) -> Answers {
    for (name, answer) in before {
        let is_asked = fields.iter().any(|field| field.name == *name);
        if !is_asked && !changes.get(name).is_some_and(Value::is_null) {
            kept.insert(name.clone(), answer.clone());
        }
    }
    kept
}

/// What a browser posted, as answers: texts become what their field's type means. What can't be read as that
/// type is left a text, for [`check`] to complain about. Files can't be posted this way.
pub fn from_pairs(fields: &[Field], pairs: &BTreeMap<String, Vec<String>>) -> Answers {
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

/// A number as people and browsers write it, `.5` and `+1` too; what is none stays a text.
fn read_number(text: &str) -> Value {
    let is_written_so = |c: char| c.is_ascii_digit() || "+-.eE".contains(c);
    // Whole ones first: a float holds but 53 bits of them.
    let whole = || text.parse::<serde_json::Number>().ok();
    let float = || {
        let float = text.chars().all(is_written_so).then(|| text.parse().ok())?;
        float.and_then(serde_json::Number::from_f64)
    };
    whole().or_else(float).map_or_else(|| Value::from(text), Value::Number)
}

/// Whether a rule's other field is itself shown and has the wanted answer. No answer is what a box that is not ticked
/// gives, and an empty text.
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
