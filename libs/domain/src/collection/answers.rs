//! Validation of the answers to a form.
//!
//! The edge validates new submissions with it, the control plane validates edits, and the tests check both. Its
//! result is stored: only answers to visible fields, without unknown keys.

mod conversion;
mod unknown;
mod values;

#[cfg(test)]
mod schema_tests;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::FieldError;
use crate::fields::{Field, ShowIf};

pub use conversion::{from_form_data, from_json};
pub use unknown::{Sent, UnknownAnswers, UnknownFields, unknown_answers};
pub(crate) use values::ascii_domain;
pub use values::{email_spellings, is_email};

/// Above this number of bytes to match against patterns, validation is slow: up to some twenty microseconds a byte.
const SLOW_BYTES: usize = 256;

/// Answers by field name.
pub type Answers = Map<String, Value>;

/// Validates answers and returns those to store.
///
/// Fields hidden by `showIf` are neither validated nor stored; unknown keys are dropped; an empty text counts as no
/// answer; blanks around an e-mail address or a URL are cut, as browsers do. Returns at most one error for each field.
pub fn check(fields: &[Field], given: &Answers) -> Result<Answers, Vec<FieldError>> {
    let mut accepted = Answers::new();
    let mut errors = Vec::new();
    let mut shown = ShownAnswers::new();
    for field in fields {
        if field.show_if.as_ref().is_some_and(|rule| !applies(rule, &shown)) {
            continue;
        }
        let answer = given.get(&field.name).filter(|value| !is_blank(value));
        let answer = answer.map(|value| values::trimmed(field.kind, value));
        match &answer {
            Some(value) => match values::check(field, value) {
                Ok(()) => drop(accepted.insert(field.name.clone(), Value::clone(value))),
                Err((code, message)) => errors.push(FieldError::new(&field.name, code, message)),
            },
            None if field.required => {
                errors.push(FieldError::new(&field.name, "required", format!("{} is required", field.label)));
            }
            None => {}
        }
        shown.insert(&field.name, answer);
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

/// The answers to the fields that are shown; `None` for a field without one.
type ShownAnswers<'a> = BTreeMap<&'a str, Option<Cow<'a, Value>>>;

/// Returns whether the other field of a rule is itself shown and has the rule's answer. An unchecked checkbox is
/// submitted as no answer, and so is an empty text.
fn applies(rule: &ShowIf, shown: &ShownAnswers<'_>) -> bool {
    shown.get(rule.field.as_str()).is_some_and(|answer| match answer.as_deref() {
        Some(Value::Array(chosen)) if !rule.equals.is_array() => {
            chosen.iter().any(|one| values::is_same(one, &rule.equals))
        }
        Some(value) => values::is_same(value, &rule.equals),
        None => rule.equals == Value::Bool(false) || is_blank(&rule.equals),
    })
}

fn is_blank(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}
